import { Failure, invalidFields } from '../../base/index.ts'
import { readQuery } from '../rest/query.ts'
import type { Finding } from '../service.ts'
import { codingOf, decompress } from './compression.ts'
import { createConnectWire } from './connect.ts'
import { type Codec, decodePayload } from './payload.ts'
import type { UnaryWire } from './wire.ts'

/**
 * Connect's form for operations without side effects: the message travels in the query of a GET, so that caches work.
 *
 * @param query the text after `?`
 */
export function createConnectGetWire(query: string): UnaryWire {
  const findings: Finding[] = []
  const parameters = new Map(readQuery(query, findings))
  const codec: Codec = parameters.get('encoding') === 'proto' ? 'proto' : 'json'
  const wire = createConnectWire(codec)
  return {
    ...wire,
    async decode(operation, _exchange, _body, bytesMax) {
      if (findings.length > 0) throw invalidFields(findings)
      const message = parameters.get('message')
      if (message === undefined || !/^(proto|json)$/.test(parameters.get('encoding') ?? ''))
        throw new Failure('MALFORMED_BODY', 'the query needs "encoding" (json or proto) and "message"')
      const bytes = Buffer.from(message, parameters.get('base64') === '1' ? 'base64url' : 'utf8')
      const coding = codingOf(parameters.get('compression'))
      return decodePayload(operation, codec, await decompress(bytes, coding, bytesMax))
    },
  }
}
