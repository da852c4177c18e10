import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files that start the product take long for their size, by which vitest sorts what it has not run yet. */
const STARTS_PROCESSES = /\/test\/(process|daemon-runner)\//

/** Begins with the files that would else run alone at the end, while a worker has nothing left to do. */
export class ProcessesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => (STARTS_PROCESSES.test(moduleId) ? 0 : 1)
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other))
  }
}
