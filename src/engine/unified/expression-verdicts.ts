import { LRUCache } from 'lru-cache'
import { compileExpression } from '../expressions/evaluator.ts'
import { validateExpression } from '../expressions/parse.ts'

/** Size of a cache of verdicts, characters of expressions. */
const CHARACTERS_CACHED_MAX = 512 * 1024

/**
 * A function of the text of an expression with a cache of its results: a check parses each expression that the methods of a
 * resource share for each of them.
 */
function cachedByText<Verdict extends object | boolean>(judge: (text: string) => Verdict): (text: string) => Verdict {
  const cache = new LRUCache<string, Verdict>({
    maxSize: CHARACTERS_CACHED_MAX,
    sizeCalculation: (_verdict, text) => text.length + 1,
  })
  return (text) => {
    const known = cache.get(text)
    if (known !== undefined) return known
    const verdict = judge(text)
    cache.set(text, verdict)
    return verdict
  }
}

/** What is wrong with the syntax of an expression; see `validateExpression`. */
export const syntaxOf = cachedByText(validateExpression)

/** Whether an expression is evaluated in this process where its input allows. */
export const isInline = cachedByText((text) => compileExpression(text).inline !== undefined)
