/** How long `vi.waitFor` goes on: longer than anything takes on a busy machine, so that only what never happens fails. */
export const EVENTUALLY = { timeout: 60_000, interval: 20 } as const
