/** One promise that is shown with a real proxy: what, and how it is shown, which gives figures. */
export type Row = readonly [name: string, show: () => Promise<string>]

/** Shows one after the other. @returns whether all hold */
export async function showRows(rows: readonly Row[]): Promise<boolean> {
  let isGood = true
  for (const [name, show] of rows) {
    const startMs = performance.now()
    const outcome = await show().then(
      (figures) => `ok: ${figures}`,
      (error) => {
        isGood = false
        return `FAILED: ${error instanceof Error ? error.stack : error}`
      },
    )
    console.log(`proxies: ${name}: ${outcome} (${((performance.now() - startMs) / 1_000).toFixed(1)} s)`)
  }
  return isGood
}
