import { beforeEach, vi } from 'vitest'

/** What this process prints on either stream, which is shown on no terminal. */
export interface PrintedOutput {
  text: string
}

/** Keeps what each test of the file prints, from its beginning. */
export function keepPrinted(): PrintedOutput {
  const printed: PrintedOutput = { text: '' }
  beforeEach(() => {
    printed.text = ''
    const keep = (text: string | Uint8Array) => {
      printed.text += text
      return true
    }
    vi.spyOn(process.stdout, 'write').mockImplementation(keep)
    vi.spyOn(process.stderr, 'write').mockImplementation(keep)
    return () => vi.restoreAllMocks()
  })
  return printed
}
