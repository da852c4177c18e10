import { gzipSync } from 'node:zlib'
import { inboundWebhookRoutes } from '../../../src/server/api/http/inbound-webhook.ts'
import type { HttpRoute } from '../../../src/server/api/http/routes.ts'
import { connectPageRoutes } from '../../../src/server/page/routes.ts'
import { KIB, MIB, repeated } from './reader.ts'

/** Where a body is read before it is known who sends it. */
export interface BodyEndpoint {
  /** Of a prefix the part before the id. */
  readonly path: string
  readonly isPrefix: boolean
}

/** RPCs without a token, which are no routes. */
const PUBLIC_RPCS: readonly BodyEndpoint[] = [
  { path: '/grpc.health.v1.Health/Check', isPrefix: false },
  { path: '/grpc.health.v1.Health/Watch', isPrefix: false },
  { path: '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo', isPrefix: false },
]

/**
 * Every endpoint that reads bodies before authentication, from what the routes say; `pre-authentication.test.ts` compares it with
 * those of a whole server.
 */
export function unauthenticatedEndpoints(): readonly BodyEndpoint[] {
  const deps = { links: {}, http: {}, clock: { monotonicMs: () => 0 } } as never
  return [...unauthenticatedRoutes([...inboundWebhookRoutes(deps), ...connectPageRoutes(deps)]), ...PUBLIC_RPCS]
}

/** Those of routes. */
export function unauthenticatedRoutes(routes: readonly HttpRoute[]): readonly BodyEndpoint[] {
  return routes.flatMap(({ path, isPrefix = false, readsBody }) =>
    readsBody === 'before_authentication' ? [{ path, isPrefix }] : [],
  )
}

/** A body that is expensive to read, and how it is sent. */
export interface WorstBody {
  readonly type: string
  readonly bytes: Uint8Array
  readonly coding?: 'gzip'
  /** The header `content-length`, where it does not tell the truth. */
  readonly declared?: number
  /** Sent in pieces with pauses, never to the end. */
  readonly isSlow?: boolean
}

const DECODED = 8 * MIB - 64 * KIB
const WHOLE = MIB - KIB
const BOUNDARY = 'x'

/** Texts of the content types that are parsed, of any length. */
const TEXTS: Readonly<Record<string, (length: number) => string>> = {
  'application/json': repeated('[],', '[', '[]]'),
  'application/xml': repeated('<a/>', '<r>', '</r>'),
  'application/x-www-form-urlencoded': repeated('a=1&'),
  'application/x-ndjson': repeated('[]\n'),
  'text/plain': repeated('x'),
  [`multipart/form-data; boundary=${BOUNDARY}`]: repeated(
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n`,
    '',
    `--${BOUNDARY}--`,
  ),
}

/** The bodies by name: each text as it is, compressed, slow, and with lengths that are wrong. */
export function worstBodies(): Readonly<Record<string, WorstBody>> {
  const bodies: Record<string, WorstBody> = {}
  for (const [type, make] of Object.entries(TEXTS)) {
    const [name = type] = type.split(';')
    bodies[name] = { type, bytes: Buffer.from(make(WHOLE)) }
    bodies[`${name}, gzip`] = { type, bytes: gzipSync(make(DECODED)), coding: 'gzip' }
  }
  const json = Buffer.from(TEXTS['application/json']?.(WHOLE) ?? '')
  const type = 'application/json'
  return {
    ...bodies,
    'grpc frame, gzip': { type: 'application/grpc', bytes: grpcFrame(gzipSync(Buffer.alloc(DECODED))) },
    slow: { type, bytes: json, isSlow: true },
    'longer than declared': { type, bytes: json, declared: KIB },
    'shorter than declared': { type, bytes: json.subarray(0, KIB), declared: WHOLE },
  }
}

/** A compressed message of gRPC. */
function grpcFrame(message: Uint8Array): Uint8Array {
  const head = Buffer.alloc(5)
  head.writeUInt8(1, 0)
  head.writeUInt32BE(message.byteLength, 1)
  return Buffer.concat([head, message])
}
