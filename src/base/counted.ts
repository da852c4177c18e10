/** A number with its noun: `1 character`, `2 characters`. @param plural where it is not the noun with an s */
export function formatQuantity(count: number | bigint, noun: string, plural = `${noun}s`): string {
  return `${count} ${Number(count) === 1 ? noun : plural}`
}
