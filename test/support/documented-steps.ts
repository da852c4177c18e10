import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

/** Pages for users, in which a block marked `sh` is run by a test and one marked `console` is only shown. */
export const GUIDES: readonly string[] = ['README.md', ...globSync('guides/*.md', { cwd: ROOT }).sort()]

/** Chapter of the README after which all other steps can be run, in any order. */
export const FIRST_STEPS = 'A call, and a run'

/** Chapter of the README, and the guide after it, whose steps need a browser: `test/lab/browser/guides.test.ts`. */
export const BROWSER_STEPS = { chapter: 'An account by a link', guide: 'guides/connect-accounts.md' } as const

/** The blocks of commands of a page, or of one chapter of it, as they are written there. */
export function stepsOf(page: string, chapter?: string): readonly string[] {
  const text = readFileSync(join(ROOT, page), 'utf8')
  const section = chapter === undefined ? text : (text.split(`\n## ${chapter}\n`)[1] ?? '').split('\n## ')[0]
  return [...(section ?? '').matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, commands = '']) => commands)
}

/** Chapters of a page that have steps. */
export function chaptersWithSteps(page: string): readonly string[] {
  const headings = [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^## (.*)$/gm)].map(
    ([, heading = '']) => heading,
  )
  return headings.filter((heading) => stepsOf(page, heading).length > 0)
}
