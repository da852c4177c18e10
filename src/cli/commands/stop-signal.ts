/** SIGHUP: the terminal was closed. SIGUSR2: tools that restart on changes. There is nothing to reread, so that they stop like the others. */
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGHUP', 'SIGUSR2'] as const
const PARENT_CHECK_MS = 250
/** Ctrl-C under npm can arrive twice, from the terminal and from npm: only a later signal is a second Ctrl-C. */
const DUPLICATE_SIGNAL_MS = 1_000
/** 128 + SIGINT: how a shell reports a program that was interrupted. */
const EXIT_INTERRUPTED = 130
const EXIT_LATE = 1
/** Closing connections and stopping PostgreSQL takes this long at least. */
const STOP_MS_MIN = 5_000
/** Share of the time that is kept for closing, and how long that is at most. */
const CLOSING_SHARE = 0.2
const CLOSING_MS_MAX = 5_000

/** How a process that serves stops. */
export interface StopOptions {
  /** From the signal to the end of the process, ms; whatever has not ended by then is left. */
  readonly limitMs: number
  /** Called right before the process ends early: at the limit, or at a second signal. Must not wait. */
  readonly onEarlyEnd?: () => void
}

/** The stop of a process. Disposed, it listens no more. */
export interface Stop extends Disposable {
  /** Resolves at the first signal. */
  readonly requested: Promise<void>
  /** How long work may go on after the signal, ms: the limit less what is kept for closing. */
  readonly drainMs: number
}

/**
 * Listens for SIGTERM, SIGINT, SIGQUIT and SIGHUP, and for the end of a parent `npm`, which does not forward SIGTERM. The first one
 * requests the stop, after which the process ends within its limit, whatever hangs. A second one ends it at once; not SIGHUP, which
 * the terminal and the shell both send, and service managers after SIGTERM.
 */
export function listenForStop({ limitMs, onEarlyEnd = () => {} }: StopOptions): Stop {
  const { promise: requested, resolve } = Promise.withResolvers<void>()
  const isBelowNpm = process.env.npm_lifecycle_event !== undefined
  const parent = process.ppid
  let firstAtMs: number | undefined
  let limit: NodeJS.Timeout | undefined
  const endNow = (exitCode: number) => {
    onEarlyEnd()
    process.exit(exitCode)
  }
  const stop = (signal: NodeJS.Signals) => {
    if (firstAtMs === undefined) {
      firstAtMs = performance.now()
      limit = setTimeout(endNow, Math.max(limitMs, STOP_MS_MIN), EXIT_LATE).unref()
      return resolve()
    }
    const isDuplicate = isBelowNpm && performance.now() - firstAtMs < DUPLICATE_SIGNAL_MS
    if (signal !== 'SIGHUP' && !isDuplicate) endNow(EXIT_INTERRUPTED)
  }
  // Unreferenced: a command that fails before any signal must not be kept alive by it.
  const watch = setInterval(() => process.ppid !== parent && stop('SIGHUP'), PARENT_CHECK_MS).unref()
  if (!isBelowNpm) clearInterval(watch)
  for (const signal of SIGNALS) process.on(signal, stop)
  return {
    requested,
    drainMs: limitMs - Math.min(CLOSING_MS_MAX, limitMs * CLOSING_SHARE),
    [Symbol.dispose]() {
      clearInterval(watch)
      clearTimeout(limit)
      for (const signal of SIGNALS) process.off(signal, stop)
    },
  }
}
