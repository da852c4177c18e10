import { accountSecrets } from '../proxy/index.ts'
import { SECRET_MASK } from '../redaction/index.ts'
import type { HeaderList } from './inbound-event.ts'
import type { InboundSource } from './source.ts'

/** Headers whose values are credentials, whatever they hold. */
const SECRET_NAME = /^(?:proxy-)?authorization$|cookie|token|secret|password|api-?key/i
/** Shorter secrets would mask parts of ordinary words. */
const SECRET_LENGTH_MIN = 6

/**
 * The headers as they are stored: credentials and known secrets of the account and the definition are masked, signatures are
 * not. Secrets are looked for as they are: an index of all their encodings costs more than receiving a request.
 */
export function redactHeaders({ plan, values }: InboundSource, headers: HeaderList): HeaderList {
  const { credentials, environmentVariables, connection } = values
  const known = accountSecrets({
    credentials: { ...credentials, webhook: connection?.webhook ?? null },
    environmentVariables,
  })
  const secrets = [...plan.secrets, ...known].filter(({ length }) => length >= SECRET_LENGTH_MIN)
  return headers.map(([name, value]) => {
    const isSecret = SECRET_NAME.test(name) || secrets.some((secret) => value.includes(secret))
    return [name, isSecret ? SECRET_MASK : value]
  })
}
