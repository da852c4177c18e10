import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Page } from 'playwright-core'
import { hasFont } from './chromium.ts'

const FOLDER = join(import.meta.dirname, '../screenshots')
const SIZES = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 800 } } as const
const COLOR_SCHEMES = ['light', 'dark'] as const
/** Of a colour channel, 0 to 255: less is the edge of a letter, drawn by another version of the same browser. */
const CHANNEL_DIFFERENCE_MAX = 48
/** Of all pixels: a moved line of text is more. */
const PIXEL_SHARE_MAX = 0.005

/**
 * Compares a page in both colour schemes and on two sizes with the golden files, or writes them with WRITE_SCREENSHOTS=1.
 *
 * All text is drawn with one font file, that of fonts-dejavu-core (see `launchChromium`), so that the pixels depend on the
 * version of Chromium alone, by little. Without the font nothing is compared.
 * @param comparer an empty page, in which pictures are compared
 * @param visit a look at each variant, before the picture is taken
 * @returns one line per picture that differs; the new one is written beside its golden file's name in the temporary folder
 */
export async function compareScreenshots(
  comparer: Page,
  page: Page,
  name: string,
  visit: (variant: string) => Promise<void> = async () => {},
): Promise<string[]> {
  const differences: string[] = []
  for (const [size, viewport] of Object.entries(SIZES)) {
    await page.setViewportSize(viewport)
    for (const colorScheme of COLOR_SCHEMES) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.evaluate(replaceVariableText)
      await visit(`${name}, ${size}, ${colorScheme}`)
      const picture = await page.screenshot({ fullPage: true, animations: 'disabled', caret: 'hide', scale: 'css' })
      const problem = await compare(comparer, picture, join(FOLDER, `${name}-${size}-${colorScheme}.png`))
      if (problem !== undefined) differences.push(`${name}-${size}-${colorScheme}: ${problem}`)
    }
  }
  return differences
}

/** Ports, ids and durations differ from run to run. Runs in the page. */
function replaceVariableText(): void {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walker.nextNode()) {
    const node = walker.currentNode
    node.nodeValue = (node.nodeValue ?? '')
      .replace(/(localhost|127\.0\.0\.1):\d+/g, '$1:8080')
      .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '00000000-0000-0000-0000-000000000000')
      .replace(/\b\d+(\.\d)? sec/g, '1.0 sec')
  }
}

async function compare(comparer: Page, picture: Buffer, path: string): Promise<string | undefined> {
  if (!hasFont()) return undefined
  if (process.env.WRITE_SCREENSHOTS === '1') {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, picture)
    return undefined
  }
  if (!existsSync(path)) return 'there is no golden file; WRITE_SCREENSHOTS=1 writes it'
  const golden = readFileSync(path)
  if (golden.equals(picture)) return undefined
  // The browser is the decoder that is there anyway.
  const problem = await comparer.evaluate(compareInPage, {
    urls: [golden, picture].map((each) => `data:image/png;base64,${each.toString('base64')}`),
    channelMax: CHANNEL_DIFFERENCE_MAX,
    shareMax: PIXEL_SHARE_MAX,
  })
  if (problem === undefined) return undefined
  const actual = join(tmpdir(), 'patchbay-screenshots', path.slice(FOLDER.length + 1))
  mkdirSync(dirname(actual), { recursive: true })
  writeFileSync(actual, picture)
  return `${problem}; now: ${actual}`
}

interface Comparison {
  readonly urls: readonly string[]
  readonly channelMax: number
  readonly shareMax: number
}

/** Runs in the page. */
async function compareInPage({ urls, channelMax, shareMax }: Comparison): Promise<string | undefined> {
  const [golden, actual] = await Promise.all(
    urls.map(async (url) => {
      const bitmap = await createImageBitmap(await (await fetch(url)).blob())
      const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d')
      context?.drawImage(bitmap, 0, 0)
      return context?.getImageData(0, 0, bitmap.width, bitmap.height)
    }),
  )
  if (golden === undefined || actual === undefined) return 'cannot be decoded'
  const size = (picture: ImageData) => `${picture.width}×${picture.height}`
  if (size(golden) !== size(actual)) return `is ${size(actual)} instead of ${size(golden)}`
  let different = 0
  for (let at = 0; at < golden.data.length; at += 4) {
    const isDifferent = [0, 1, 2].some(
      (channel) => Math.abs((golden.data[at + channel] ?? 0) - (actual.data[at + channel] ?? 0)) > channelMax,
    )
    if (isDifferent) different += 1
  }
  const share = different / (golden.width * golden.height)
  return share > shareMax ? `${(share * 100).toFixed(2)} % of the pixels differ` : undefined
}
