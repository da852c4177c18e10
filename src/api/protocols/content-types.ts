import { Failure } from '../../base/index.ts'
import type { StreamProtocol, UnaryProtocol } from '../pipeline/protocol.ts'
import { createConnectProtocol, createConnectStreamProtocol } from './connect.ts'
import type { MessageFormat } from './framing.ts'
import { createGrpcProtocol, grpcForm, grpcWebForm, grpcWebTextForm } from './grpc.ts'

/** The protocol a content type stands for; Connect has one for unary calls and another for streams. */
export interface ProtocolChoice {
  readonly unary?: UnaryProtocol
  readonly stream?: StreamProtocol
}

const CHOICES: ReadonlyMap<string, ProtocolChoice> = new Map([
  ...grpcChoices('application/grpc', grpcForm),
  ...grpcChoices('application/grpc-web', grpcWebForm),
  ...grpcChoices('application/grpc-web-text', grpcWebTextForm),
  ...(['json', 'proto'] as const).flatMap((codec): [string, ProtocolChoice][] => [
    [`application/${codec}`, { unary: createConnectProtocol(codec) }],
    [`application/connect+${codec}`, { stream: createConnectStreamProtocol(codec) }],
  ]),
])

/** The content types an RPC path accepts, as the header `Accept-Post` lists them. */
export const RPC_CONTENT_TYPES = { unary: typesWith('unary'), stream: typesWith('stream') } as const

function typesWith(kind: keyof ProtocolChoice): string {
  return [...CHOICES].flatMap(([type, choice]) => (choice[kind] === undefined ? [] : [type])).join(', ')
}

/** The protocol of an RPC request, by its content type; `charset=utf-8` is the only parameter that matters. */
export function protocolForContentType(contentType: string | undefined): ProtocolChoice | undefined {
  if (contentType === undefined) return undefined
  return CHOICES.get(contentType) ?? (charsetProblem(contentType) ? undefined : CHOICES.get(mediaType(contentType)))
}

/** Why a body of this content type is not read; `otherwise` says so where its character set is not the reason. */
export function unsupportedMediaType(contentType: string | undefined, otherwise: string): Failure {
  const isJson = /\bjson$/.test(mediaType(contentType ?? ''))
  return new Failure('UNSUPPORTED_MEDIA_TYPE', (isJson ? charsetProblem(contentType ?? '') : undefined) ?? otherwise)
}

/** What is wrong with the character set that a content type names; JSON is UTF-8 (RFC 8259, 8.1). */
function charsetProblem(contentType: string): string | undefined {
  const charset = /;\s*charset\s*=\s*"?([^\s";]*)/i.exec(contentType)?.[1]
  if (charset === undefined || /^utf-?8$/i.test(charset)) return undefined
  return `the character set ${charset.slice(0, CHARSET_LENGTH_MAX)} is not supported: send JSON in UTF-8`
}

/** Of a character set, as it is repeated to its sender. */
const CHARSET_LENGTH_MAX = 40

function mediaType(contentType: string): string {
  return contentType.split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

function grpcChoices(base: string, form: typeof grpcForm): [string, ProtocolChoice][] {
  const spellings: readonly [string, MessageFormat][] = [
    [base, 'proto'],
    [`${base}+proto`, 'proto'],
    [`${base}+json`, 'json'],
  ]
  return spellings.map(([contentType, codec]) => {
    const wire = createGrpcProtocol(form, codec, contentType)
    return [contentType, { unary: wire, stream: wire }]
  })
}

/** JSON under any of its names, e.g. `application/merge-patch+json`. */
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json$/

/** Tells whether a body is JSON in UTF-8; one that does not say what it is counts as such. */
export function isJsonType(contentType: string | undefined): boolean {
  if (contentType === undefined || contentType === 'application/json') return true
  return JSON_TYPE.test(mediaType(contentType)) && charsetProblem(contentType) === undefined
}
