import type { Json, JsonObject } from '../../foundation/json/index.ts'
import type { ProcessingStep } from './effects.ts'

/** Records what the steps of processing a request did, and how long each took. Holds sizes and decisions, never content. */
export class StepRecorder {
  readonly #steps: Record<string, JsonObject> = {}
  #current: ProcessingStep = 'load'

  /** The step that was begun last: the one that failed, when one did. */
  get current(): ProcessingStep {
    return this.#current
  }

  /** `{<step>: {ms, …facts}}`; durations in milliseconds, with a tenth. */
  get trace(): JsonObject {
    return { ...this.#steps }
  }

  /** Runs a step. @param facts what the trace says about its result; short values only */
  async run<Result>(
    step: ProcessingStep,
    work: () => Promise<Result>,
    facts: (result: Result) => Readonly<Record<string, Json>> = () => ({}),
  ): Promise<Result> {
    this.#current = step
    const startedMs = performance.now()
    const ms = () => Math.round((performance.now() - startedMs) * 10) / 10
    try {
      const result = await work()
      this.#steps[step] = { ms: ms(), ...facts(result) }
      return result
    } catch (error) {
      this.#steps[step] = { ms: ms(), failed: true }
      throw error
    }
  }
}
