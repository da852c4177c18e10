import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { sandboxFlags } from '../../../../src/engine/expressions/sandbox-process.ts'

const ROOT = join(import.meta.dirname, '../../../..')
const EVALUATOR = 'src/engine/expressions/evaluator.ts'
const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'patchbay sandbox, é#%-')))

afterAll(() => rmSync(scratch, { recursive: true, force: true }))

/** Runs a program that gets `createEvaluator` from the sources under a root. */
function program(root: string, body: string): string[] {
  const url = JSON.stringify(join(root, EVALUATOR))
  const text = `import { pathToFileURL } from 'node:url'
    const { createEvaluator } = await import(pathToFileURL(${url}))
    const evaluator = createEvaluator()
    ${body}`
  return ['--input-type=module', '--eval', text]
}

describe('the sandbox process', () => {
  it.each([
    ['read a file', `require('node:fs').readFileSync('/etc/hosts')`, 'ERR_ACCESS_DENIED'],
    [
      'read the sources around it',
      `require('node:fs').readFileSync(${JSON.stringify(join(ROOT, 'package.json'))})`,
      'ERR_ACCESS_DENIED',
    ],
    ['write a file', `require('node:fs').writeFileSync('x', '')`, 'ERR_ACCESS_DENIED'],
    ['start a process', `require('node:child_process').spawnSync('true')`, 'ERR_ACCESS_DENIED'],
    ['start a thread', `new (require('node:worker_threads').Worker)('1', { eval: true })`, 'ERR_ACCESS_DENIED'],
    ['load native code', `process.dlopen({ exports: {} }, '/lib/x.node')`, 'ERR_DLOPEN_DISABLED'],
    ['turn text into code', `new Function('return 1')`, 'EvalError'],
    ['reach a prototype by name', `if (({}).__proto__ === undefined) throw new Error('gone')`, 'gone'],
  ])('may not %s', (_what, attempt, failure) => {
    const text = `try { ${attempt}; console.log('done') } catch (error) { console.log(error.code, error.name, error.message) }`
    const { stdout } = spawnSync(process.execPath, [...sandboxFlags(), '--eval', text], { env: {}, encoding: 'utf8' })
    expect(stdout).toContain(failure)
  })

  it('runs from a folder of any name, without the environment', async () => {
    for (const part of [
      'src/foundation/base',
      'src/foundation/fair',
      'src/foundation/json',
      'src/engine/expressions',
      'node_modules/jsonata',
      'node_modules/lru-cache',
    ]) {
      cpSync(join(ROOT, part), join(scratch, part), { recursive: true })
    }
    writeFileSync(join(scratch, 'package.json'), '{"type":"module"}')
    const body = `console.log(await evaluator.evaluate('$sum([1, 2])', {}))
      const { readdirSync, readFileSync } = await import('node:fs')
      const own = (pid) => { try { return readFileSync('/proc/' + pid + '/stat', 'utf8').includes(') S ' + process.pid + ' ') } catch { return false } }
      for (const pid of readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name)).filter(own))
        console.log('environment', JSON.stringify(readFileSync('/proc/' + pid + '/environ', 'utf8').split('\\0').filter(Boolean)))`
    const { stdout, stderr } = spawnSync(process.execPath, program(scratch, body), { encoding: 'utf8' })
    expect(stderr).toBe('')
    const [sum, ...environments] = stdout.trim().split('\n')
    expect(sum).toBe('3')
    for (const environment of environments) expect(environment).toBe('environment ["TZ=UTC"]')
  })

  it('does not keep its parent running', () => {
    const body = `console.log(await evaluator.evaluate('$sum([1, 2])', {}))`
    const { stdout, status } = spawnSync(process.execPath, program(ROOT, body), { encoding: 'utf8', timeout: 60_000 })
    expect([stdout.trim(), status]).toEqual(['3', 0])
  })

  it('keeps its parent running while it has work', () => {
    const body = `evaluator.evaluate('$sum([1, 2])', {}).then(console.log)`
    const { stdout } = spawnSync(process.execPath, program(ROOT, body), { encoding: 'utf8', timeout: 60_000 })
    expect(stdout.trim()).toBe('3')
  })

  it('ends when its parent is killed', async () => {
    const body = `await Promise.all([1, 2, 3].map((n) => evaluator.evaluate('$sum([' + n + '])', {})))
      const { readdirSync, readFileSync } = await import('node:fs')
      const own = (pid) => { try { return readFileSync('/proc/' + pid + '/stat', 'utf8').split(') ')[1].split(' ')[1] === String(process.pid) } catch { return false } }
      console.log(readdirSync('/proc').filter(own).join(' '))
      setInterval(() => {}, 1000)`
    const parent = spawn(process.execPath, program(ROOT, body), { stdio: ['ignore', 'pipe', 'inherit'] })
    const [output] = (await once(parent.stdout, 'data')) as [Buffer]
    const children = output.toString().trim().split(' ').map(Number)
    expect(children.length).toBeGreaterThan(0)
    parent.kill('SIGKILL')
    await once(parent, 'exit')
    for (const child of children) while (isRunning(child)) await new Promise((resolve) => setImmediate(resolve))
  })
})

function isRunning(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    return false
  }
}
