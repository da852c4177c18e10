import { Failure, invalidFields } from '../../base/index.ts'
import { readQuery } from '../rest/query.ts'
import type { Finding } from '../service.ts'
import { codingOf, decompress } from './compression.ts'
import { createConnectProtocol } from './connect.ts'
import { decodePayload, type MessageFormat } from './payload.ts'
import type { UnaryProtocol } from './wire.ts'

/**
 * Connect's form for operations without side effects: the message travels in the query of a GET, so that caches work.
 *
 * @param query the text after `?`
 */
export function createConnectGetProtocol(query: string): UnaryProtocol {
  const findings: Finding[] = []
  const parameters = new Map(readQuery(query, findings))
  const codec: MessageFormat = parameters.get('encoding') === 'proto' ? 'proto' : 'json'
  const wire = createConnectProtocol(codec)
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
