import { equal, match, ok, rejects } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { credentials, Client as GrpcClient } from '@grpc/grpc-js'
import { freePort } from '../../../support/product.ts'
import { DaemonProcess } from '../../../unit/cli/daemon/support/daemon-process.ts'
import { frontServer, grpcServer } from './configurations.ts'
import { directly, type Installation } from './installation.ts'
import type { Row } from './rows.ts'
import { envelope, firstPart, send } from './send.ts'
import { startHaproxy, startNginx } from './servers.ts'
import { FIRST_EVENT } from './upstream.ts'

const FIRST_WITHIN_MS = 1_000
const UPLOAD_BYTES = 10 * 1024 * 1024
/** Integration of the account in plaintext. */
export const INTEGRATION = 'behind-nginx'
const WATCH = '/grpc.health.v1.Health/Watch'
const SERVING = Buffer.from([8, 1])

/** What passes an nginx that passes the path on. */
export function streamRows(installation: Installation, account: string): readonly Row[] {
  const { plain, publicUrl, authority, upstream } = installation
  const ca = authority.certificate
  const call = directly(plain)
  const token = plain.bootstrap.environment_token
  const bearer = { authorization: `Bearer ${token}` }
  const watch = async (contentType: string, body: Buffer) => {
    const options = { method: 'POST', headers: { 'content-type': contentType }, body, ca }
    const { ms, answer, part } = await firstPart(`${publicUrl}${WATCH}`, options)
    answer.destroy()
    ok(ms < FIRST_WITHIN_MS, `the first message came after ${ms} ms`)
    return { ms, part }
  }
  return [
    [
      'nginx, first message of a Watch with JSON',
      async () => {
        const { ms, part } = await watch('application/connect+json', envelope('{}'))
        match(part, /SERVING/)
        return `${ms} ms`
      },
    ],
    [
      'nginx, first message of a Watch by gRPC-Web',
      async () => {
        const { ms, part } = await watch('application/grpc-web+proto', envelope(''))
        ok(part.includes(SERVING.toString()))
        return `${ms} ms`
      },
    ],
    [
      'nginx, events of a tool server, Host of an upstream group',
      async () => {
        const tools = await call('POST', '/tool-server', token, { name: 'behind', integrated_account_id: account })
        const { ms, part } = await firstPart(`${publicUrl}/mcp/${tools.id}`, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            authorization: `Bearer ${tools.token}`,
          },
          body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
          ca,
        })
        match(part, /list_contacts/)
        return `${ms} ms`
      },
    ],
    [
      'nginx, an answer of a third party that comes bit by bit, and is broken off',
      async () => {
        const url = `${publicUrl}/custom/events?integrated_account_id=${account}`
        const { ms, answer, part } = await firstPart(url, { headers: bearer, ca })
        equal(part, FIRST_EVENT)
        ok(ms < FIRST_WITHIN_MS, `the first bytes came after ${ms} ms`)
        const rest = text(answer)
        upstream.breakOff()
        await rejects(rest)
        return `${ms} ms, and no end that looks whole`
      },
    ],
    [
      'nginx, headers by which a third party would command it',
      async () => {
        const url = `${publicUrl}/custom/command?integrated_account_id=${account}`
        equal((await send(url, { headers: bearer, ca })).body, 'own')
        return 'not passed on'
      },
    ],
    [
      'nginx, an upload through a method',
      async () => {
        const answer = await send(`${publicUrl}/proxy/files?integrated_account_id=${account}`, {
          method: 'POST',
          headers: { ...bearer, 'content-type': 'application/octet-stream', 'content-length': String(UPLOAD_BYTES) },
          body: Buffer.alloc(UPLOAD_BYTES, 'x'),
          ca,
        })
        match(answer.body, new RegExp(`"length":${UPLOAD_BYTES}`))
        return '10 MiB'
      },
    ],
    [
      'nginx, percent-encoding of a path',
      async () => {
        const url = `${publicUrl}/custom/a%2Fb%20c//d?integrated_account_id=${account}`
        equal((await send(url, { headers: bearer, ca })).body, '{"path":"/a%2Fb%20c//d"}')
        return 'byte for byte'
      },
    ],
    [
      'nginx, HEAD, and two slashes after its path',
      async () => {
        const head = await send(`${publicUrl}/openapi.json`, { method: 'HEAD', ca })
        const body = await send(`${publicUrl}//openapi.json`, { ca })
        equal(body.status, 200)
        equal(head.headers['content-length'], String(Buffer.byteLength(body.body)))
        return 'served'
      },
    ],
    ['nginx, a daemon that waits for a run', () => runDaemon(installation, account)],
  ]
}

/** A daemon gets a run that is asked for while it waits, and a watcher of the run sees its end. */
async function runDaemon(installation: Installation, account: string): Promise<string> {
  const { plain, publicUrl, authority, files } = installation
  const call = directly(plain)
  const token = plain.bootstrap.environment_token
  const store = mkdtempSync(join(tmpdir(), 'patchbay-behind-'))
  try {
    await using daemon = new DaemonProcess(['--url', publicUrl, '--group', 'behind', '--store', `ndjson:${store}`], {
      PATCHBAY_TOKEN: token,
      NODE_EXTRA_CA_CERTS: files.authority,
    })
    await daemon.waitForOutput('takes runs')
    const resources = [{ resource: 'contacts', method: 'list', persist: true }]
    const job = await call('POST', '/sync-job', token, {
      label: 'Behind',
      integration_name: INTEGRATION,
      resources,
    })
    const startMs = performance.now()
    const run = await call('POST', '/sync-job-run', token, {
      sync_job_id: job.id,
      integrated_account_id: account,
      daemon_group_key: 'behind',
    })
    const { answer } = await firstPart(`${publicUrl}/patchbay.v1.SyncJobRunService/WatchSyncJobRun`, {
      method: 'POST',
      headers: { 'content-type': 'application/connect+json', authorization: `Bearer ${token}` },
      body: envelope(JSON.stringify({ id: run.id })),
      ca: authority.certificate,
    })
    const rest = await text(answer)
    const ms = Math.round(performance.now() - startMs)
    equal(await daemon.end('SIGTERM'), 0)
    match(rest || String((await call('GET', `/sync-job-run/${run.id}`, token)).status), /completed/i)
    return `completed ${ms} ms after it was asked for`
  } finally {
    rmSync(store, { recursive: true })
  }
}

/** gRPC through each proxy, from a client that shares no code with the server. */
export async function grpcRows(installation: Installation): Promise<readonly Row[]> {
  const { plain, secure, files } = installation
  const ports = { h2c: await freePort(), grpcs: await freePort(), haproxy: await freePort(), tls: await freePort() }
  const show = (port: number, isSecure: boolean) => () => callByGrpc(installation, port, isSecure)
  const nginx = () =>
    startNginx(
      grpcServer(installation, ports.h2c, `grpc://127.0.0.1:${plain.port}`) +
        grpcServer(installation, ports.grpcs, `grpcs://127.0.0.1:${secure.port}`),
    )
  const haproxy = () =>
    startHaproxy(`
listen plain
  bind 127.0.0.1:${ports.haproxy} proto h2
  server patchbay 127.0.0.1:${plain.port} proto h2
listen secure
  bind 127.0.0.1:${ports.tls} ssl crt ${files.pem} alpn h2,http/1.1
  server patchbay 127.0.0.1:${secure.port} ssl alpn h2 verify required ca-file ${files.authority} verifyhost localhost sni str(localhost)`)
  return [
    ['nginx, gRPC to plaintext', async () => await during(nginx, show(ports.h2c, true))],
    ['nginx, gRPC to TLS', async () => await during(nginx, show(ports.grpcs, true))],
    ['HAProxy, gRPC in plaintext on both sides', async () => await during(haproxy, show(ports.haproxy, false))],
    ['HAProxy, gRPC with TLS on both sides', async () => await during(haproxy, show(ports.tls, true))],
  ]
}

async function during(start: () => Promise<AsyncDisposable>, show: () => Promise<string>): Promise<string> {
  await using _ = await start()
  return await show()
}

async function callByGrpc({ authority }: Installation, port: number, isSecure: boolean): Promise<string> {
  const trusted = isSecure ? credentials.createSsl(Buffer.from(authority.certificate)) : credentials.createInsecure()
  const client = new GrpcClient(`127.0.0.1:${port}`, trusted, { 'grpc.ssl_target_name_override': 'localhost' })
  const asIs = (bytes: Buffer) => bytes
  const deadline = Date.now() + 10_000
  try {
    const unary = await new Promise<Buffer | undefined>((resolve, reject) => {
      client.makeUnaryRequest(
        '/grpc.health.v1.Health/Check',
        asIs,
        asIs,
        Buffer.alloc(0),
        { deadline },
        (error, bytes) => (error === null ? resolve(bytes) : reject(error)),
      )
    })
    ok(unary?.equals(SERVING))
    const startMs = performance.now()
    const stream = client.makeServerStreamRequest(WATCH, asIs, asIs, Buffer.alloc(0), { deadline })
    const first = await new Promise<Buffer>((resolve, reject) => stream.once('data', resolve).once('error', reject))
    const ms = Math.round(performance.now() - startMs)
    stream.on('error', () => {}).cancel()
    ok(first.equals(SERVING))
    ok(ms < FIRST_WITHIN_MS, `the first message came after ${ms} ms`)
    return `a call, and the first message of a stream after ${ms} ms`
  } finally {
    client.close()
  }
}

/** nginx that passes the path on, to a group of servers. */
export function startFront(installation: Installation) {
  const group = `upstream patchbay { server 127.0.0.1:${installation.plain.port}; }`
  return startNginx(group + frontServer(installation, 'http://patchbay'))
}
