import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** One step of a journey: a file of `src/` and the functions called there, in order. */
interface JourneyStep {
  readonly file: string
  readonly functions: readonly string[]
}

/** What happens for one request, tick, run or definition, from entry to end. */
export interface Journey {
  readonly title: string
  readonly steps: readonly JourneyStep[]
}

const SECTION = /^## Journeys\n([\s\S]*?)(?=^## |(?![\s\S]))/m
const STEP = /^\d+\. `([^`]+\.ts)`((?:,? (?:and )?`[\w.#]+`)+)/gm

/** Reads the journeys that `src/README.md` of a checkout lists: `### title`, then `1. \`file.ts\` \`function\`, …` per step. */
export function readJourneys(root: string): readonly Journey[] {
  const [, section = ''] = SECTION.exec(readFileSync(join(root, 'src/README.md'), 'utf8')) ?? []
  return section
    .split(/^### /m)
    .slice(1)
    .map((text) => ({
      title: text.slice(0, text.indexOf('\n')),
      steps: [...text.matchAll(STEP)].map(([, file = '', names = '']) => ({
        file,
        functions: [...names.matchAll(/`([\w.#]+)`/g)].map(([, name = '']) => name),
      })),
    }))
}
