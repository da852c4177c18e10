import { decodeBody } from './decode.ts'
import { toUpstreamFailure } from './failures.ts'
import type { HttpHeaders } from './headers.ts'

/** A body without its content encoding, and the headers that are true of it. */
export interface DecodedContent {
  readonly headers: HttpHeaders
  readonly body: Uint8Array
}

/**
 * Undoes the `content-encoding` of a whole body, for whoever has streamed it and wants to read it after all.
 *
 * @param host named in the failure
 * @param bytesMax of the decoded body
 * @throws Failure UPSTREAM_INVALID_RESPONSE
 */
export async function decodeContent(
  host: string,
  headers: HttpHeaders,
  body: Buffer,
  bytesMax: number,
): Promise<DecodedContent> {
  const { 'content-encoding': encoding, 'content-length': _encoded, ...others } = headers
  if (encoding === undefined) return { headers, body }
  try {
    return { headers: others, body: await decodeBody(encoding, body, bytesMax) }
  } catch (error) {
    throw toUpstreamFailure(host, error)
  }
}
