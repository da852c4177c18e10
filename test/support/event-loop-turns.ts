/** How many turns the event loop took while the work was under way; 0 for work that lets no other run. */
export async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = -1
  let isOver = false
  const count = () => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  count()
  await work()
  isOver = true
  return turns
}
