const SIGNALS = ['SIGTERM', 'SIGINT'] as const
const PARENT_CHECK_MS = 250
/** Ctrl-C under npm can arrive twice, from the terminal and from npm: only a later signal is a second Ctrl-C. */
const DUPLICATE_SIGNAL_MS = 1_000

/**
 * Resolves at the first SIGTERM or SIGINT, or when the parent `npm` has ended, which does not forward SIGTERM.
 *
 * A second signal ends the process at once, without waiting for the drain.
 */
export async function waitForStopSignal(): Promise<void> {
  await new Promise<void>((resolve) => {
    const parent = process.ppid
    // Unreferenced: a command that fails before any signal must not be kept alive by it.
    const watch = setInterval(() => process.ppid !== parent && stop(), PARENT_CHECK_MS).unref()
    if (process.env.npm_lifecycle_event === undefined) clearInterval(watch)
    function stop() {
      clearInterval(watch)
      for (const signal of SIGNALS) process.off(signal, stop)
      const firstAt = Date.now()
      const exitNow = () => Date.now() - firstAt > DUPLICATE_SIGNAL_MS && process.exit(130)
      for (const signal of SIGNALS) process.on(signal, exitNow)
      resolve()
    }
    for (const signal of SIGNALS) process.on(signal, stop)
  })
}
