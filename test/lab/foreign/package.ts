import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import {
  bareEnvironment,
  type RunningProduct,
  removeDataDir,
  startProduct,
  temporaryDataDir,
} from '../../support/product.ts'

const ROOT = join(import.meta.dirname, '../../..')
const PNPM = ['npx', '-y', 'pnpm@12.21.0']
/** Only for what hangs: other suites read and write beside it. */
const COMMAND_TIMEOUT_MS = 600_000
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024
const FIXTURE = join(ROOT, 'test/data/unified-calls/fixtures/crm/hubspot.json')

interface Install {
  readonly name: string
  /** What is there before: nothing, or the files of the repository. */
  readonly into: 'empty directory' | 'clone'
  /** The file of the package is appended in an empty directory. */
  readonly command: readonly string[]
  /** Takes the arguments of `patchbay`. */
  readonly patchbay: readonly string[]
}

/** With the Node that was installed, as units and images start it. */
const OF_CLONE = ['node_modules/.bin/node', 'bin/patchbay.js']

const INSTALLS: readonly Install[] = [
  {
    name: 'npm install of the package',
    into: 'empty directory',
    command: ['npm', 'install', '--prefer-offline'],
    patchbay: ['npx', 'patchbay'],
  },
  {
    name: 'npm ci --omit=dev --ignore-scripts',
    into: 'clone',
    command: ['npm', 'ci', '--omit=dev', '--ignore-scripts', '--prefer-offline'],
    patchbay: OF_CLONE,
  },
  { name: 'pnpm install --prod', into: 'clone', command: [...PNPM, 'install', '--prod'], patchbay: OF_CLONE },
]

/**
 * Packs a copy of the product, and installs and starts it in every way that the guide names, one after the other. A definition that is
 * checked in a thread and an expression that is evaluated in a child process show that files which are named by their paths are found.
 *
 * @returns whether all of them work. @throws when one cannot be installed
 */
export async function testInstalls(): Promise<boolean> {
  const folder = temporaryDataDir()
  try {
    const packed = await pack(folder)
    let isGood = true
    for (const [index, each] of INSTALLS.entries()) {
      const directory = join(folder, String(index))
      await install(each, directory, packed)
      isGood = (await start(each, directory)) && isGood
      rmSync(directory, { recursive: true, force: true })
    }
    return isGood
  } finally {
    removeDataDir(folder)
  }
}

/** @returns the file of the package. @throws when JavaScript is left beside the sources */
async function pack(folder: string): Promise<string> {
  const copy = join(folder, 'copy')
  mkdirSync(copy)
  await copyRepository(copy)
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
  const name = (await run(['npm', 'pack', '--silent', '--pack-destination', folder], copy)).trim()
  if (existsSync(join(copy, 'src/main.js'))) throw new Error('npm pack left JavaScript beside the sources')
  return join(folder, name)
}

async function install({ into, command }: Install, directory: string, packed: string): Promise<void> {
  mkdirSync(directory)
  if (into === 'clone') await copyRepository(directory)
  await run([...command, ...(into === 'clone' ? [] : [packed])], directory)
}

/** @returns whether it starts, works and stops */
async function start({ name, patchbay }: Install, directory: string): Promise<boolean> {
  const begunAt = performance.now()
  const dataDir = join(directory, '.patchbay')
  const command = [...patchbay, 'start']
  try {
    const product = await startProduct({ dataDir, directory, command, environment: environment() })
    const seconds = (performance.now() - begunAt) / 1_000
    try {
      await use(product, patchbay, directory)
    } finally {
      await product.stop()
    }
    console.log(`${name}: healthy after ${seconds.toFixed(1)} s`)
    return true
  } catch (error) {
    console.error(`${name}: ${error instanceof Error ? error.message : error}`)
    return false
  }
}

async function use({ dataDir, port }: RunningProduct, patchbay: readonly string[], cwd: string): Promise<void> {
  const settings = { PATCHBAY_DATA_DIR: dataDir, PATCHBAY_PORT: String(port) }
  await run([...patchbay, 'install', 'hubspot'], cwd, settings)
  await run([...patchbay, 'unified', 'try', 'crm/hubspot', '--fixture', FIXTURE, '--case', 'contacts/list'], cwd)
}

/** The files that git knows and those that it would add, as they are now. */
async function copyRepository(directory: string): Promise<void> {
  const list = await run(['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'], ROOT)
  for (const path of list.split('\0').filter((each) => each !== '' && !each.startsWith('test/'))) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    cpSync(join(ROOT, path), join(directory, path))
  }
}

/** Without the Node of this repository on the path, since each install has to bring its own, and without what npm says about it. */
function environment(): NodeJS.ProcessEnv {
  const entries = Object.entries(bareEnvironment()).filter(
    ([name]) => !/^npm_(?:package|config_local_prefix)/.test(name),
  )
  const path = (process.env.PATH ?? '').split(delimiter).filter((directory) => !directory.includes('node_modules'))
  return { ...Object.fromEntries(entries), PATH: path.join(delimiter) }
}

/** @returns standard output. @throws when the command fails, with its output */
async function run(command: readonly string[], cwd: string, settings: NodeJS.ProcessEnv = {}): Promise<string> {
  const [file = '', ...args] = command
  const options = {
    cwd,
    env: { ...environment(), ...settings },
    timeout: COMMAND_TIMEOUT_MS,
    maxBuffer: OUTPUT_BYTES_MAX,
  }
  const { stdout } = await promisify(execFile)(file, args, options).catch(({ message, stdout, stderr }) => {
    throw new Error(`${message}\n${stdout}${stderr}`)
  })
  return stdout
}
