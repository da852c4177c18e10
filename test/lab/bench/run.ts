/**
 * `npm run bench [name…]`: measures the named figures, all when none is named. `npm run bench compare <commit> [name…]`: see
 * `compare.ts`.
 *
 * Each figure is one JSON line `{name, value, unit, target, ok}`; speed is a ratio to a floor measured in the same run.
 */
const BENCHMARKS: Readonly<Record<string, () => Promise<{ run(): Promise<void> }>>> = {
  'rpc-patch': () => import('./rpc-patch.ts'),
  'rpc-get': () => import('./rpc-get.ts'),
  'rpc-cost': () => import('./rpc-cost.ts'),
  'proxy-hop': () => import('./proxy-hop.ts'),
  'proxy-stream': () => import('./proxy-stream.ts'),
  'unified-list': () => import('./unified-list.ts'),
  'mcp-call': () => import('./mcp-call.ts'),
  expression: () => import('./expression.ts'),
  'unified-map': () => import('./unified-map.ts'),
  start: () => import('./start.ts'),
  'sync-webhook': () => import('./sync-webhook.ts'),
  'sync-store': () => import('./sync-store.ts'),
  'sync-parents': () => import('./sync-parents.ts'),
  'runs-queue': () => import('./runs-queue.ts'),
  deliveries: () => import('./deliveries.ts'),
  inbound: () => import('./inbound.ts'),
  'ticks-steady': () => import('./ticks-steady.ts'),
  'ticks-burst': () => import('./ticks-burst.ts'),
  'ticks-pinned': () => import('./ticks-pinned.ts'),
  'ticks-idle': () => import('./ticks-idle.ts'),
  'ticks-growth': () => import('./ticks-growth.ts'),
}

const [first, commit, ...compared] = process.argv.slice(2)
const isCompared = first === 'compare'
const asked = isCompared ? compared : process.argv.slice(2)
const unknown = asked.filter((name) => !Object.hasOwn(BENCHMARKS, name))
if (unknown.length > 0) {
  process.stderr.write(`no benchmark ${unknown.join(', ')}; there are ${Object.keys(BENCHMARKS).join(', ')}\n`)
  process.exitCode = 2
} else if (isCompared) {
  const { run } = await import('./compare.ts')
  await run(commit, asked)
} else {
  for (const [name, load] of Object.entries(BENCHMARKS)) {
    if (asked.length > 0 && !asked.includes(name)) continue
    await (await load()).run()
  }
}
