import { charsetProblem, mediaType } from '../pipeline/media-type.ts'

/** How messages are written on a wire. */
export interface WireFormat {
  readonly protocol: 'grpc' | 'grpc-web' | 'connect'
  readonly contentType: string
  readonly isBinary: boolean
  /** Messages are in envelopes; else the body is the message. */
  readonly isEnveloped: boolean
  /** Names the compression of the request. */
  readonly encodingHeader: string
  /** Lists those that are accepted. */
  readonly acceptHeader: string
  /** What it carries. */
  readonly kinds: readonly ('unary' | 'stream')[]
}

const GRPC = { isEnveloped: true, encodingHeader: 'grpc-encoding', acceptHeader: 'grpc-accept-encoding' } as const
const UNARY = { isEnveloped: false, encodingHeader: 'content-encoding', acceptHeader: 'accept-encoding' } as const
const STREAM = {
  isEnveloped: true,
  encodingHeader: 'connect-content-encoding',
  acceptHeader: 'connect-accept-encoding',
} as const

const FORMATS: readonly WireFormat[] = [
  ...grpcFormats('grpc'),
  ...grpcFormats('grpc-web'),
  { protocol: 'connect', contentType: 'application/json', isBinary: false, kinds: ['unary'], ...UNARY },
  { protocol: 'connect', contentType: 'application/proto', isBinary: true, kinds: ['unary'], ...UNARY },
  { protocol: 'connect', contentType: 'application/connect+json', isBinary: false, kinds: ['stream'], ...STREAM },
  { protocol: 'connect', contentType: 'application/connect+proto', isBinary: true, kinds: ['stream'], ...STREAM },
]

function grpcFormats(protocol: 'grpc' | 'grpc-web'): readonly WireFormat[] {
  return ['', '+proto', '+json'].map((suffix) => ({
    protocol,
    contentType: `application/${protocol}${suffix}`,
    isBinary: suffix !== '+json',
    kinds: ['unary', 'stream'],
    ...GRPC,
  }))
}

const BY_TYPE: ReadonlyMap<string, WireFormat> = new Map(FORMATS.map((format) => [format.contentType, format]))

/** The format of an RPC request, by its content type; of its parameters only `charset` matters, which must be UTF-8. */
export function formatOf(contentType: string | undefined): WireFormat | undefined {
  if (contentType === undefined) return undefined
  return BY_TYPE.get(contentType) ?? (charsetProblem(contentType) ? undefined : BY_TYPE.get(mediaType(contentType)))
}

/** The content types that an RPC path accepts, as the header `Accept-Post` lists them. */
export const RPC_CONTENT_TYPES = { unary: typesOf('unary'), stream: typesOf('stream') } as const

function typesOf(kind: 'unary' | 'stream'): string {
  return FORMATS.filter(({ kinds }) => kinds.includes(kind))
    .map(({ contentType }) => contentType)
    .join(', ')
}
