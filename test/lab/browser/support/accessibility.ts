import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Frame, Page } from 'playwright-core'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Findings of axe-core on a page as it is: rule, impact and elements. */
export async function findAccessibilityProblems(place: Page | Frame): Promise<string[]> {
  // Reading half a megabyte of script once per document: a page is looked at four times.
  if (!(await place.evaluate(() => 'axe' in window))) await place.evaluate(AXE)
  return await place.evaluate(async () => {
    const axe = Reflect.get(window, 'axe') as typeof import('axe-core')
    const { violations } = await axe.run(document, { resultTypes: ['violations'] })
    return violations.map(({ id, impact, nodes }) => `${id} (${impact}): ${nodes.map(({ html }) => html).join(' | ')}`)
  })
}
