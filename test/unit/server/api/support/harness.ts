import type { AddressInfo } from 'node:net'
import { type Clock, Failure, systemClock } from '../../../../../src/foundation/base/index.ts'
import type { Logger } from '../../../../../src/foundation/telemetry/index.ts'
import type { Principal } from '../../../../../src/platform/tenancy/index.ts'
import type { Observation } from '../../../../../src/server/api/exchange.ts'
import type { ApiLimits } from '../../../../../src/server/api/limits.ts'
import type { ApiServer, ApiServerOptions } from '../../../../../src/server/api/server.ts'
import { createApiServer } from '../../../../../src/server/api/server.ts'
import { Health } from '../../../../../src/server/api/services/health.ts'
import { manualClock } from '../../../../support/manual-clock.ts'
import { createEvents, type WidgetEvents, widgetService } from './widget-service.ts'

export const ENVIRONMENT_ID = '0192d3a4-0000-7000-8000-00000000000e'
export const WIDGET_ID = '0192d3a4-0000-7000-8000-000000000001'

const TEAM: Principal = {
  kind: 'team',
  tokenId: 'team',
  teamId: 't',
  environmentId: undefined,
  isOperator: false,
  scopes: undefined,
}

/** Three tokens: `env`, `team` (names an environment by header) and `slow`, which is admitted when the test says so. */
function createAuthenticator(slow: Promise<void>): ApiServerOptions['authenticator'] {
  return {
    parseToken: (token) => ({ hash: token, knownId: ['team', 'env'].includes(token) ? token : undefined }),
    async authenticate(presented, environmentHeader) {
      const token = presented?.hash
      if (token === 'slow') await slow
      if (token === 'team') return { ...TEAM, environmentId: environmentHeader }
      if (token === 'env' || token === 'slow')
        return { ...TEAM, kind: 'environment', tokenId: token, environmentId: ENVIRONMENT_ID }
      throw new Failure('TOKEN_INVALID', 'the token is unknown, expired or revoked')
    },
  }
}

/** One line of the log. */
interface LogLine {
  readonly level: string
  readonly fields: Readonly<Record<string, unknown>>
  readonly message: string
}

/** A running API over the test contract. */
export interface Harness extends AsyncDisposable {
  readonly server: ApiServer
  readonly baseUrl: string
  readonly port: number
  readonly events: WidgetEvents
  readonly log: readonly LogLine[]
  readonly observations: readonly Observation[]
  readonly health: Health
  /** Lets the token `slow` in. */
  readonly admitSlow: () => void
}

export interface HarnessOptions extends Partial<Omit<ApiServerOptions, 'limits' | 'clock'>> {
  readonly limits?: Partial<ApiLimits>
  /** Absent: that of the system; with a rate limit one that stands, so that no window ends however busy the machine is. */
  readonly clock?: Clock
}

export async function startHarness({ limits, clock, ...options }: HarnessOptions = {}): Promise<Harness> {
  const events = createEvents()
  const log: LogLine[] = []
  const observations: Observation[] = []
  const slow = Promise.withResolvers<void>()
  const health = new Health(['widget.v1.WidgetService'])
  const server = createApiServer({
    services: [widgetService(events)],
    authenticator: createAuthenticator(slow.promise),
    clock: clock ?? (limits?.rateRequestsMax || limits?.rateAddressMax ? manualClock(new Date()) : systemClock),
    logger: createRecorder(log),
    health,
    // What only ends a client that hangs: a busy machine takes longer to write what many clients send at once.
    limits: { rateRequestsMax: 0, rateAddressMax: 0, headersMs: 60_000, ...limits },
    observe: (observation) => observations.push(observation),
    ...options,
  })
  const { port }: AddressInfo = await server.listen('127.0.0.1', 0)
  const scheme = options.tls === undefined ? 'http' : 'https'
  return {
    server,
    baseUrl: `${scheme}://127.0.0.1:${port}`,
    port,
    events,
    log,
    observations,
    health,
    admitSlow: slow.resolve,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

function createRecorder(log: LogLine[]): Logger {
  const record = (level: string) => (fields: Readonly<Record<string, unknown>>, message: string) => {
    log.push({ level, fields, message })
  }
  return { debug: record('debug'), info: record('info'), warn: record('warn'), error: record('error') }
}
