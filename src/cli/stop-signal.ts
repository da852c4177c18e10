const SIGNALS = ['SIGTERM', 'SIGINT'] as const
const PARENT_CHECK_MS = 250

/**
 * Resolves at the first SIGTERM or SIGINT, or when the `npm` that ran this process is gone: npm does not pass SIGTERM on.
 *
 * A second signal ends the process at once, for a drain that is not waited for.
 */
export async function stopSignal(): Promise<void> {
  await new Promise<void>((resolve) => {
    const parent = process.ppid
    const watch = setInterval(() => process.ppid !== parent && stop(), PARENT_CHECK_MS)
    if (process.env.npm_lifecycle_event === undefined) clearInterval(watch)
    function stop() {
      clearInterval(watch)
      for (const signal of SIGNALS) process.off(signal, stop)
      for (const signal of SIGNALS) process.once(signal, () => process.exit(130))
      resolve()
    }
    for (const signal of SIGNALS) process.on(signal, stop)
  })
}
