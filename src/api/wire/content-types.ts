import { createConnectWire } from './connect.ts'
import { createConnectStreamWire } from './connect-stream.ts'
import { createGrpcWire, grpcForm } from './grpc.ts'
import { grpcWebForm } from './grpc-web.ts'
import type { Codec } from './payload.ts'
import type { StreamWire, UnaryWire } from './wire.ts'

/** The protocol a content type stands for; Connect has one for unary calls and another for streams. */
export interface WireChoice {
  readonly unary?: UnaryWire
  readonly stream?: StreamWire
}

const CHOICES: ReadonlyMap<string, WireChoice> = new Map([
  ...grpcChoices('application/grpc', grpcForm),
  ...grpcChoices('application/grpc-web', grpcWebForm),
  ...(['json', 'proto'] as const).flatMap((codec): [string, WireChoice][] => [
    [`application/${codec}`, { unary: createConnectWire(codec) }],
    [`application/connect+${codec}`, { stream: createConnectStreamWire(codec) }],
  ]),
])

/** The content types an RPC path accepts, as the header `Accept-Post` lists them. */
export const RPC_CONTENT_TYPES = [...CHOICES.keys()].join(', ')

/** The protocol of an RPC request, by its content type; parameters such as `charset=utf-8` are ignored. */
export function wireOf(contentType: string | undefined): WireChoice | undefined {
  if (contentType === undefined) return undefined
  return CHOICES.get(contentType) ?? CHOICES.get(contentType.split(';', 1)[0]?.trim().toLowerCase() ?? '')
}

function grpcChoices(base: string, form: typeof grpcForm): [string, WireChoice][] {
  const spellings: readonly [string, Codec][] = [
    [base, 'proto'],
    [`${base}+proto`, 'proto'],
    [`${base}+json`, 'json'],
  ]
  return spellings.map(([contentType, codec]) => {
    const wire = createGrpcWire(form, codec, contentType)
    return [contentType, { unary: wire, stream: wire }]
  })
}

/** JSON in UTF-8 under any of its names, e.g. `application/merge-patch+json`. */
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\s*(?:;\s*charset="?utf-8"?\s*)?$/i

/** Tells whether a body is JSON; one that does not say what it is counts as such. */
export function isJsonType(contentType: string | undefined): boolean {
  return contentType === undefined || contentType === 'application/json' || JSON_TYPE.test(contentType)
}
