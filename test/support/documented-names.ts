import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** A source file that a line of a page names, and the functions and types that it lists with it. */
interface DocumentedFile {
  /** As it is written. */
  readonly path: string
  /** From the root of the checkout; absent when there is none. */
  readonly file: string | undefined
  readonly names: readonly string[]
}

const CODE = /`([^`\n]+)`/g
const PATH = /^[\w./-]+\.ts$/
const FOLDER = /^[\w./-]+\/$/
const NAME = /^#?[A-Za-z_]\w*(?:\(\))?$/
/** Between a file and its names, and between two of them: `file.ts` (`one`, `two`), `file.ts` `one` and `two`. */
const LIST = /^(?: | \(|, | and |, and )$/
/** Between a name and the file after it. */
const OWNED = /^ of $/

/**
 * The files that a page names, in order, with the names that follow each or stand before it: `name` of `file.ts`. Generated tables
 * are left out: the tests that write them check them.
 */
export function documentedFiles(root: string, page: string): readonly DocumentedFile[] {
  const text = readFileSync(join(root, page), 'utf8')
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .replaceAll(/^<!-- (\w+) -->$[\s\S]*?^<!-- \/\1 -->$/gm, '')
  return text.split('\n').flatMap((line) => filesOf(root, dirname(page), line))
}

function filesOf(root: string, folder: string, line: string): readonly DocumentedFile[] {
  const words = [...line.matchAll(CODE)].map((match) => ({
    word: match[1] ?? '',
    start: match.index,
    end: match.index + match[0].length,
  }))
  const gapAfter = (at: number) => line.slice(words[at]?.end, words[at + 1]?.start)
  const isName = (at: number) => NAME.test(words[at]?.word ?? '')
  const isPath = (at: number) => PATH.test(words[at]?.word ?? '')
  const isOwned = (at: number) => isName(at) && isPath(at + 1) && OWNED.test(gapAfter(at))
  let folders = [folder, 'src', '.']
  return words.flatMap(({ word }, at) => {
    if (FOLDER.test(word)) folders = [folder, 'src', '.', join('src', word), join(folder, word)]
    if (!isPath(at)) return []
    const file = folders.map((top) => join(top, word)).find((path) => existsSync(join(root, path)))
    if (file !== undefined) folders = [folder, 'src', '.', dirname(file)]
    const names = isOwned(at - 1) ? [words[at - 1]?.word ?? ''] : []
    for (let next = at + 1; isName(next) && LIST.test(gapAfter(next - 1)) && !isOwned(next); next += 1)
      names.push(words[next]?.word ?? '')
    return [{ path: word, file, names: names.map((name) => name.replace('()', '')) }]
  })
}
