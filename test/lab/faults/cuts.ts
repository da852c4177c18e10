/**
 * A secret in every encoding, in a text that is cut at every place, with every mark that follows a cut: of none of them 8 characters in
 * a row may be left after redaction. `test/unit/engine/proxy/cut-secrets.test.ts` does the same for everything that keeps errors of third parties.
 */

import { Redactor } from '../../../src/foundation/redaction/index.ts'
import { SECRET_ENCODINGS } from '../../support/secret-encodings.ts'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'
import { CUT_MARKS, shownWindows } from './support/cut-windows.ts'

/** Secrets with and without characters that encodings escape. */
const SECRETS = [
  'kX9_tq2LmVw7Rz4Yb8Nc1Hd6Pf3Gj5Ks',
  'a/b+c=d e&f"g<h>i\\j%k.l~m!n*o(p)q',
  `${'long-'.repeat(30)}secret`,
]

let [cuts, shown] = [0, 0]
for (const secret of SECRETS) {
  const redaction = new Redactor(() => [secret])
  for (const [name, encode] of Object.entries(SECRET_ENCODINGS)) {
    const text = `the key ${encode(secret)} is not valid`
    for (let length = 1; length <= text.length; length++)
      for (const mark of CUT_MARKS) {
        cuts += 1
        const redacted = redaction.redactText(text.slice(0, length) + mark)
        if (shownWindows(redacted, secret).length === 0) continue
        shown += 1
        process.stderr.write(`${name}: ${redacted}\n`)
      }
  }
}
reportAtLeast('cuts/texts', cuts, 'texts', 10_000)
reportAtMost('cuts/shown', shown, 'texts', 0)
