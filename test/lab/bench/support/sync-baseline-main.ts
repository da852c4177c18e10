/**
 * What one would write by hand to bring a list to a webhook: fetch a page, post it, fetch the next. It signs nothing,
 * remembers nothing and loses everything when it ends.
 *
 * `sync-baseline-main.ts <upstream> <receiver> <page size>`, forked: after every message it does it once and sends the
 * seconds that took.
 */
const [upstream, receiver, limit] = process.argv.slice(2)

async function bringAll(): Promise<number> {
  const from = performance.now()
  for (let page = 1; ; page++) {
    const answer = await fetch(`${upstream}/contacts?page=${page}&limit=${limit}`)
    const { data } = (await answer.json()) as { readonly data: readonly unknown[] }
    if (data.length === 0) return (performance.now() - from) / 1_000
    const posted = await fetch(`${receiver}/hook`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ page, records: data }),
    })
    if (!posted.ok) throw new Error(`the receiver answered ${posted.status}`)
    await posted.arrayBuffer()
  }
}

process.on('message', async () => process.send?.(await bringAll()))
