import { charsetProblem, mediaType } from '../pipeline/media-type.ts'
import type { StreamProtocol, UnaryProtocol } from '../pipeline/protocol.ts'
import { createConnectProtocol, createConnectStreamProtocol } from './connect.ts'
import type { MessageFormat } from './framing.ts'
import { createGrpcProtocol, grpcForm, grpcWebForm, grpcWebTextForm } from './grpc.ts'

/** The protocol that a content type stands for; Connect has one for unary calls and another for streams. */
export interface ProtocolChoice {
  readonly unary?: UnaryProtocol
  readonly stream?: StreamProtocol
}

const CHOICES: ReadonlyMap<string, ProtocolChoice> = new Map([
  ...grpcChoices('application/grpc', grpcForm),
  ...grpcChoices('application/grpc-web', grpcWebForm),
  ...grpcChoices('application/grpc-web-text', grpcWebTextForm),
  ...(['json', 'proto'] as const).flatMap((format): [string, ProtocolChoice][] => [
    [`application/${format}`, { unary: createConnectProtocol(format) }],
    [`application/connect+${format}`, { stream: createConnectStreamProtocol(format) }],
  ]),
])

/** The content types that an RPC path accepts, as the header `Accept-Post` lists them. */
export const RPC_CONTENT_TYPES = { unary: typesWith('unary'), stream: typesWith('stream') } as const

function typesWith(kind: keyof ProtocolChoice): string {
  return [...CHOICES].flatMap(([type, choice]) => (choice[kind] === undefined ? [] : [type])).join(', ')
}

/** The protocol of an RPC request, by its content type; of its parameters only `charset` matters, which must be UTF-8. */
export function protocolForContentType(contentType: string | undefined): ProtocolChoice | undefined {
  if (contentType === undefined) return undefined
  return CHOICES.get(contentType) ?? (charsetProblem(contentType) ? undefined : CHOICES.get(mediaType(contentType)))
}

function grpcChoices(base: string, form: typeof grpcForm): [string, ProtocolChoice][] {
  const types: readonly [string, MessageFormat][] = [
    [base, 'proto'],
    [`${base}+proto`, 'proto'],
    [`${base}+json`, 'json'],
  ]
  return types.map(([contentType, format]) => {
    const protocol = createGrpcProtocol(form, format, contentType)
    return [contentType, { unary: protocol, stream: protocol }]
  })
}
