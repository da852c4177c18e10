import { hostname } from 'node:os'
import product from '../../../package.json' with { type: 'json' }
import { suggest, systemClock } from '../../foundation/base/index.ts'
import { REGIONS } from '../../foundation/queue/index.ts'
import { createLogger, type Logger } from '../../foundation/telemetry/index.ts'
import { ConfigError, readConfig } from '../../server/config/index.ts'
import type { ServerAddress } from '../client/transport.ts'
import { createDaemon, type DaemonOptions } from '../daemon/daemon.ts'
import { openStore } from '../daemon/open-store.ts'
import { connectService } from '../daemon/service.ts'
import type { Store } from '../daemon/store.ts'
import { StoreError } from '../daemon/store-problem.ts'
import { type Invocation, type RunCommand, UsageError } from './command.ts'
import { printLine } from './output.ts'
import { readServerAddress } from './server-address.ts'
import { listenForStop } from './stop-signal.ts'

const GROUP_KEY = /^[A-Za-z0-9_.:-]{1,128}$/
const SCHEMA = /^[a-z_][a-z0-9_]{0,62}$/
const LABEL_LENGTH_MAX = 255
const CAPACITY_DEFAULT = 4
const CAPACITY_MAX = 100

/** Runs a daemon beside a store of the customer's; it needs the address of the service and a token, no database of the product. */
export const runDaemon: RunCommand = async (invocation) => {
  const config = readConfig(invocation.environment)
  const logger = createLogger(config.logLevel)
  const { service, store: opened, options } = readArguments(invocation, logger)
  using stop = listenForStop({ limitMs: config.drainMs })
  await using store = opened
  await Promise.race([checkStore(store, logger), stop.requested])
  const onFirstRegistration = () =>
    printLine(`Patchbay daemon ${options.label} takes runs of the group ${options.groupKey}`)
  const deps = { service: connectService(service), store, clock: systemClock, random: Math.random, logger }
  await using daemon = createDaemon({ ...deps, onFirstRegistration }, options)
  daemon.start()
  await Promise.race([daemon.ended(), stop.requested])
  await daemon.drain(stop.drainMs)
  return 0
}

/** Every run needs the store: what no wait can mend ends the daemon at its start. @throws ConfigError */
async function checkStore(store: Store, logger: Logger): Promise<void> {
  try {
    await store.check()
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    if (error.problem.effect !== 'unavailable') throw new ConfigError(error.message)
    logger.warn({ error: error.message }, 'runs of this daemon wait for its store')
  }
}

interface DaemonArguments {
  readonly service: ServerAddress
  readonly store: Store
  readonly options: DaemonOptions
}

function readArguments({ options, environment }: Invocation, logger: Logger): DaemonArguments {
  const { group, store: address, schema = 'public', label = hostname() } = options
  if (group === undefined || address === undefined) throw new UsageError('daemon needs --group KEY and --store STORE')
  const service = readServerAddress('daemon', options, environment)
  if (!GROUP_KEY.test(group)) throw new UsageError('daemon --group takes letters, digits and _ . : -, at most 128')
  if (!SCHEMA.test(schema)) throw new UsageError('daemon --schema takes the lower-case name of a schema')
  const capacity = parseCapacity(options.capacity)
  const onViewProblem = (problem: string) => logger.warn({ problem }, 'a view of a unified resource could not be made')
  const store = openStore({ address, schema, writers: capacity, onViewProblem })
  if (store === undefined) throw new UsageError('daemon --store takes postgres://… or ndjson:DIR')
  return {
    service,
    store,
    options: {
      groupKey: group,
      label: label.slice(0, LABEL_LENGTH_MAX),
      version: `${product.name} ${product.version}`,
      capacity,
      regions: parseRegions(options.region),
    },
  }
}

function parseRegions(text: string | undefined): readonly string[] {
  const regions = text?.split(',') ?? []
  const unknown = regions.find((region) => !REGIONS.some((each) => each === region))
  if (unknown === undefined) return regions
  throw new UsageError(
    `daemon --region takes a comma-separated list of ${REGIONS.join(', ')}${suggest(unknown, REGIONS)}`,
  )
}

function parseCapacity(text: string | undefined): number {
  const capacity = Number(text ?? CAPACITY_DEFAULT)
  if (Number.isInteger(capacity) && capacity >= 1 && capacity <= CAPACITY_MAX) return capacity
  throw new UsageError(`daemon --capacity takes a whole number from 1 to ${CAPACITY_MAX}`)
}
