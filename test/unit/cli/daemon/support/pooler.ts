import { connect, createServer } from 'node:net'
import { join } from 'node:path'

/** What PgBouncer takes of a start-up packet without `ignore_startup_parameters`. */
const STARTUP_PARAMETERS: ReadonlySet<string> = new Set([
  'user',
  'database',
  'client_encoding',
  'application_name',
  'datestyle',
  'timezone',
  'standard_conforming_strings',
])

/** A connection pooler before a PostgreSQL. */
export interface Pooler extends AsyncDisposable {
  readonly address: string
  /** What a pooler that gives each transaction another session cannot do: `set` of the session, named statements. */
  readonly sessionUses: readonly string[]
}

/**
 * A proxy that rejects start-up packets as PgBouncer does, and notes what depends on the session.
 *
 * @param url of the database behind, on a Unix socket: `postgres://user@/name?host=…&port=…`
 */
export async function startPooler(url: string): Promise<Pooler> {
  const [, user = '', name = '', query] = /^\w+:\/\/([^@]*)@\/([^?]*)\?(.*)$/.exec(url) ?? []
  const { host, port } = Object.fromEntries(new URLSearchParams(query))
  const sessionUses: string[] = []
  const server = createServer((client) => {
    const behind = connect(join(host ?? '', `.s.PGSQL.${port}`))
    for (const [one, other] of [[client, behind] as const, [behind, client] as const]) {
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroy())
    }
    behind.pipe(client)
    let isStarted = false
    let buffered = Buffer.alloc(0)
    client.on('data', (bytes) => {
      buffered = Buffer.concat([buffered, bytes])
      for (;;) {
        const head = isStarted ? 1 : 0
        if (buffered.length < head + 4) return
        const length = head + buffered.readInt32BE(head)
        if (buffered.length < length) return
        const message = buffered.subarray(0, length)
        buffered = buffered.subarray(length)
        const unsupported = isStarted ? undefined : unsupportedParameter(message)
        if (unsupported !== undefined) return void client.end(rejection(unsupported))
        if (isStarted) sessionUses.push(...sessionUsesOf(message))
        isStarted = true
        behind.write(message)
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const bound = server.address()
  return {
    address: `postgres://${user}@127.0.0.1:${typeof bound === 'object' ? bound?.port : ''}/${name}`,
    sessionUses,
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

function unsupportedParameter(message: Buffer): string | undefined {
  const names = message
    .subarray(8)
    .toString()
    .split('\0')
    .filter((_, index) => index % 2 === 0)
  return names.find((each) => each !== '' && !STARTUP_PARAMETERS.has(each.toLowerCase()))
}

function sessionUsesOf(message: Buffer): readonly string[] {
  const [first = '', second = ''] = message.subarray(5).toString('latin1').split('\0')
  const type = String.fromCharCode(message[0] ?? 0)
  if (type === 'P' && first !== '') return [`prepare ${first}`]
  const sql = type === 'Q' ? first : type === 'P' ? second : ''
  return /^\s*(set(?!\s+local)|listen|prepare|declare)\b|pg_advisory_lock/i.test(sql) ? [sql] : []
}

function rejection(parameter: string): Buffer {
  const body = Buffer.from(`SFATAL\0C08P01\0Munsupported startup parameter: ${parameter}\0\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}
