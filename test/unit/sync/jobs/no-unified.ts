import type { executeWebhookRun } from '../../../../src/sync/jobs/index.ts'

const unused = () => {
  throw new Error('the test syncs no unified resource')
}

/** What runs of unified resources need, for tests of others. */
export const NO_UNIFIED: Pick<Parameters<typeof executeWebhookRun>[0], 'unified' | 'mappings'> = {
  unified: {
    proxy: { call: unused, pages: unused, preview: unused },
    evaluator: { evaluate: unused, evaluateAll: unused },
    clock: { now: unused },
  },
  mappings: { find: unused },
}
