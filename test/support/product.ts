import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

const ROOT = join(import.meta.dirname, '../..')
const HEALTHY_DEADLINE_MS = 90_000
const POLL_MS = 10

/** What the first start writes. */
interface Bootstrap {
  readonly team_id: string
  readonly environment_id: string
  readonly team_token: string
  readonly environment_token: string
}

/** The product as its own process, started the way a user starts it. */
export interface RunningProduct {
  readonly url: string
  readonly port: number
  readonly child: ChildProcess
  readonly dataDir: string
  readonly bootstrap: Bootstrap
  /** Standard output and error so far. */
  output(): string
  /** SIGTERM, then waits for the end; resolves with the exit code. */
  stop(): Promise<number | null>
}

/** A fresh data directory that other uids may walk through. */
export function temporaryDataDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'patchbay-run-'))
  chmodSync(dir, 0o711)
  return dir
}

/** Removes what `temporaryDataDir` made. */
export function removeDataDir(dir: string): void {
  rmSync(dir, { recursive: true, force: true })
}

/** The variables of this process without settings of the product: what a test is run with is not what it tests. */
export function bareEnvironment(): NodeJS.ProcessEnv {
  // Of npm: a second signal right after the first is a duplicate below it.
  const isSetting = (name: string) => name === 'DATABASE_URL' || /^(PATCHBAY_|npm_lifecycle_)/.test(name)
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !isSetting(name)))
}

/** Starts `patchbay start` (or another command) and waits for its first healthy answer. */
export async function startProduct(options: {
  readonly dataDir: string
  readonly environment?: NodeJS.ProcessEnv
  readonly command?: readonly string[]
  /** Where it is started. Default: the root of the repository. */
  readonly directory?: string
  /** Default: any free one. */
  readonly port?: number
  /** Default: 90 s, for a busy machine. */
  readonly healthyWithinMs?: number
  /** Who has issued its certificate for `localhost`, PEM. Default: it has none. */
  readonly authority?: string
}): Promise<RunningProduct> {
  const port = options.port ?? (await freePort())
  const command = options.command ?? [process.execPath, join(ROOT, 'src/main.ts'), 'start']
  const [file = process.execPath, ...args] = command
  const child = spawn(file, args, {
    cwd: options.directory ?? ROOT,
    env: {
      ...bareEnvironment(),
      PATCHBAY_DATA_DIR: options.dataDir,
      PATCHBAY_PORT: String(port),
      PATCHBAY_LOG_LEVEL: 'warn',
      ...options.environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const url = options.authority === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`
  const isHealthy = () => askHealth(url, options.authority).catch(() => false)
  await untilHealthy(isHealthy, child, () => output, options.healthyWithinMs ?? HEALTHY_DEADLINE_MS).catch((error) => {
    child.kill('SIGKILL')
    throw error
  })
  // 'close' waits for grandchildren too: under npm the server outlives npm by its drain.
  const exited = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)))
  return {
    url,
    port,
    child,
    dataDir: options.dataDir,
    bootstrap: JSON.parse(readFileSync(join(options.dataDir, 'bootstrap.json'), 'utf8')),
    output: () => output,
    stop: () => {
      child.kill('SIGTERM')
      return exited
    },
  }
}

async function untilHealthy(
  isHealthy: () => Promise<boolean>,
  child: ChildProcess,
  output: () => string,
  withinMs: number,
): Promise<void> {
  for (const end = Date.now() + withinMs; Date.now() < end; ) {
    const ended = child.exitCode ?? child.signalCode
    if (ended !== null) throw new Error(`the product ended with ${ended}:\n${output()}`)
    if (await isHealthy()) return
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  throw new Error(`the product is not healthy after ${withinMs} ms:\n${output()}`)
}

async function askHealth(url: string, ca: string | undefined): Promise<boolean> {
  const send = ca === undefined ? httpRequest : httpsRequest
  const sent = send(`${url}/grpc.health.v1.Health/Check`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    agent: false,
    ...(ca === undefined ? {} : { ca }),
  })
  sent.end('{}')
  const [answer]: IncomingMessage[] = await once(sent, 'response')
  return answer?.statusCode === 200 && (await text(answer)).includes('SERVING')
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}
