import { existsSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { type Browser, type BrowserContext, chromium } from 'playwright-core'
import { within } from './until.ts'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']
const FONT_FOLDER = '/usr/share/fonts/truetype/dejavu'
/** Screenshots are compared where this font exists. */
export const FONT_FILE = `${FONT_FOLDER}/DejaVuSans.ttf`

/** The executable: that of CHROMIUM, else one in the PATH. */
export function findChromium(): string | undefined {
  const given = process.env.CHROMIUM
  if (given !== undefined && given !== '') return existsSync(given) ? given : undefined
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/bin']
  return folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find((path) => existsSync(path))
}

export function hasFont(): boolean {
  return existsSync(FONT_FILE)
}

/** Replaces every family whose name matches by one of the DejaVu fonts, so that text does not depend on the machine's fonts. */
function fontRule(compare: 'contains' | 'not_contains', font: string): string {
  return `<match target="pattern"><test qual="all" name="family" compare="${compare}"><string>mono</string></test>
<edit name="family" mode="prepend" binding="strong"><string>${font}</string></edit></match>`
}

function writeFontConfig(): string {
  const folder = mkdtempSync(join(tmpdir(), 'patchbay-fonts-'))
  const path = join(folder, 'fonts.conf')
  const rules = fontRule('not_contains', 'DejaVu Sans') + fontRule('contains', 'DejaVu Sans Mono')
  const folders = `<dir>${FONT_FOLDER}</dir><cachedir>${folder}</cachedir>`
  writeFileSync(
    path,
    `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>${folders}${rules}</fontconfig>`,
  )
  return path
}

/**
 * Starts headless Chromium with its popup blocker, without third-party cookies.
 * @param args further switches
 */
export async function launchChromium(args: readonly string[] = []): Promise<Browser> {
  const executablePath = findChromium()
  if (executablePath === undefined) throw new Error('there is no Chromium; npm run test:browser installs it')
  return await chromium.launch({
    executablePath,
    // Its sandbox needs user namespaces, which root in a container lacks.
    chromiumSandbox: process.getuid?.() !== 0,
    ignoreDefaultArgs: ['--disable-popup-blocking'],
    args: ['--test-third-party-cookie-phaseout', '--font-render-hinting=none', '--disable-lcd-text', ...args],
    env: { ...process.env, ...(hasFont() ? { FONTCONFIG_FILE: writeFontConfig() } : {}) } as Record<string, string>,
  })
}

/**
 * Closes a browser context. Chromium does not always answer while a window of it is just being replaced for a
 * Cross-Origin-Opener-Policy; the end of the browser closes the context then.
 */
export async function closeContext(context: BrowserContext): Promise<void> {
  await within(5_000, context.close())
}
