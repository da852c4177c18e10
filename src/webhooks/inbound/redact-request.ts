import { callSecrets } from '../../engine/proxy/index.ts'
import { SECRET_MASK } from '../../foundation/redaction/index.ts'
import type { HeaderList } from './inbound-event.ts'
import type { InboundSource } from './source.ts'

/** Names of headers and parameters whose values are credentials, whatever they hold. */
const SECRET_HEADER = /^(?:proxy-)?authorization$|cookie|token|secret|password|api-?key/i
const SECRET_PARAMETER = /secret|password|api-?key/i
/** Shorter secrets would mask parts of ordinary words. */
const SECRET_LENGTH_MIN = 6

/** What of a request may hold credentials beside its body. */
interface StoredRequestHead {
  readonly headers: HeaderList
  /** As received, without the question mark. */
  readonly query: string
}

/**
 * Headers and query as they are stored: credentials and known secrets of the account and the definition are masked, signatures
 * are not. Secrets are looked for as they are: an index of all their encodings costs more than receiving a request.
 */
export function redactRequest(
  { plan, values }: InboundSource,
  { headers, query }: StoredRequestHead,
): StoredRequestHead {
  const { credentials, environmentVariables, connection } = values
  const known = callSecrets(plan, {
    credentials: { ...credentials, webhook: connection?.webhook ?? null },
    environmentVariables,
  })
  const secrets = known.filter(({ length }) => length >= SECRET_LENGTH_MIN)
  const hasSecret = (value: string) => secrets.some((secret) => value.includes(secret))
  return {
    headers: headers.map(([name, value]) => [name, SECRET_HEADER.test(name) || hasSecret(value) ? SECRET_MASK : value]),
    query: maskParameters(query, (name, value) => SECRET_PARAMETER.test(name) || hasSecret(value)),
  }
}

/** The query with the values of some parameters masked; all others stay as they were received. */
function maskParameters(query: string, isSecret: (name: string, value: string) => boolean): string {
  return query
    .split('&')
    .map((parameter) => {
      const [[name, value] = ['', '']] = new URLSearchParams(parameter)
      return isSecret(name, value) ? `${encodeURIComponent(name)}=${SECRET_MASK}` : parameter
    })
    .join('&')
}
