const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** Resolves at the first SIGTERM or SIGINT; a second one ends the process at once, for a drain that is not waited for. */
export async function stopSignal(): Promise<void> {
  await new Promise<void>((resolve) => {
    const stop = () => {
      for (const signal of SIGNALS) process.off(signal, stop)
      for (const signal of SIGNALS) process.once(signal, () => process.exit(130))
      resolve()
    }
    for (const signal of SIGNALS) process.on(signal, stop)
  })
}
