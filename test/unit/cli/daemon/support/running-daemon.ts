import { createDaemon } from '../../../../../src/cli/daemon/daemon.ts'
import { openStore } from '../../../../../src/cli/daemon/open-store.ts'
import { connectService } from '../../../../../src/cli/daemon/service.ts'
import { systemClock } from '../../../../../src/foundation/base/index.ts'
import { type ListeningLogger, listeningLogger } from '../../../../support/listening-logger.ts'

/** A daemon in this process. */
export interface RunningDaemon extends AsyncDisposable, Pick<ListeningLogger, 'log' | 'logged'> {
  readonly daemon: ReturnType<typeof createDaemon>
  /** Resolves when it has drained; rejects with the error that ended it. */
  readonly ended: Promise<void>
}

/** Its service, group and store. */
export interface DaemonTarget {
  readonly url: string
  readonly token: string
  readonly group: string
  /** Address of its store. */
  readonly store: string
  readonly schema?: string
  readonly capacity?: number
}

/** Starts a daemon; disposing it interrupts its runs. */
export function startDaemon({
  url,
  token,
  group,
  store: address,
  schema = 'public',
  capacity = 4,
}: DaemonTarget): RunningDaemon {
  const store = openStore({ address, schema, writers: capacity })
  if (store === undefined) throw new Error(`no store at ${address}`)
  const { logger, log, logged } = listeningLogger()
  const deps = { service: connectService({ url, token }), store, clock: systemClock, random: Math.random, logger }
  const daemon = createDaemon(deps, { groupKey: group, label: 'test', version: 'test', regions: [], capacity })
  daemon.start()
  const ended = daemon.ended()
  ended.catch(() => {})
  return {
    daemon,
    ended,
    log,
    logged,
    async [Symbol.asyncDispose]() {
      await daemon[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    },
  }
}
