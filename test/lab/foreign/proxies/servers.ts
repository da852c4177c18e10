import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const READY_WITHIN_MS = 10_000

/** Programs of Debian are in these folders too, which the PATH of a user lacks. */
const PATH = [process.env.PATH, '/usr/sbin', '/sbin'].join(':')

/** A proxy as a child process, with a configuration and directory of its own. */
export interface ProxyServer extends AsyncDisposable {
  /** What it has written so far. */
  output(): string
}

/** Starts nginx with the content of its `http` block. */
export function startNginx(http: string): Promise<ProxyServer> {
  return start((directory) => {
    const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path temp_${kind};`)
    const user = process.getuid?.() === 0 ? 'user root;' : ''
    const text = `${user}
worker_processes 1; daemon off; pid nginx.pid; error_log stderr notice;
events {}
http { access_log off; ${kinds.join(' ')}
${http} }`
    const file = join(directory, 'nginx.conf')
    writeFileSync(file, text)
    return { program: 'nginx', args: ['-p', directory, '-c', file], ready: 'start worker process ' }
  })
}

/** Starts HAProxy with sections after `defaults`. */
export function startHaproxy(sections: string): Promise<ProxyServer> {
  return start((directory) => {
    const text = `defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
${sections}
`
    const file = join(directory, 'haproxy.cfg')
    writeFileSync(file, text)
    return { program: 'haproxy', args: ['-W', '-f', file], ready: 'Loading success' }
  })
}

/** Starts tinyproxy, which opens tunnels to one port. */
export function startTinyproxy(port: number, tunnelPort: number): Promise<ProxyServer> {
  return start((directory) => {
    const file = join(directory, 'tinyproxy.conf')
    writeFileSync(file, `Port ${port}\nListen 127.0.0.1\nAllow 127.0.0.1\nConnectPort ${tunnelPort}\nLogLevel Info\n`)
    return { program: 'tinyproxy', args: ['-d', '-c', file], ready: 'Accepting connections' }
  })
}

interface Program {
  readonly program: string
  readonly args: readonly string[]
  /** Text that it prints once it accepts connections. */
  readonly ready: string
}

async function start(prepare: (directory: string) => Program): Promise<ProxyServer> {
  const directory = mkdtempSync(join(tmpdir(), 'patchbay-proxy-'))
  const { program, args, ready } = prepare(directory)
  const child = spawn(program, args, { env: { ...process.env, PATH }, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      if (output.includes(ready)) resolve()
    })
  const fail = (why: unknown) => reject(new Error(`${program} did not start: ${why}\n${output}`))
  child.once('error', fail).once('exit', fail)
  const timer = setTimeout(() => fail(`not within ${READY_WITHIN_MS} ms`), READY_WITHIN_MS)
  const dispose = async () => {
    await end(child)
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    await promise
  } catch (error) {
    await dispose()
    throw error
  } finally {
    clearTimeout(timer)
  }
  return { output: () => output, [Symbol.asyncDispose]: dispose }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}
