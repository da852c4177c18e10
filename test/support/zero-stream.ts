import { Readable } from 'node:stream'

/** So many zeros, made as they are asked for. */
export function zeros(bytes: number): { readonly body: Readable; readonly produced: () => number } {
  let produced = 0
  const body = new Readable({
    read() {
      if (produced === bytes) return void this.push(null)
      const chunk = Buffer.alloc(Math.min(65_536, bytes - produced))
      produced += chunk.length
      this.push(chunk)
    },
  })
  return { body, produced: () => produced }
}
