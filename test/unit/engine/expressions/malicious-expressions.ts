/** An expression written to hurt: what it tries, and its text. */
export interface HostileExpression {
  readonly attack: string
  readonly text: string
}

const nested = (depth: number, operator: string) => `${'('.repeat(depth)}a${` ${operator} a)`.repeat(depth)}`

/** Expressions that exhaust time, memory or the parser, each by another way. */
export const EXHAUSTING: readonly HostileExpression[] = [
  ['pads to half a gigabyte', '$length($pad("x", 500000000))'],
  ['pads and encodes', '$length($base64encode($pad("x", 200000000)))'],
  ['doubles a text', '$length($reduce([1..23], function($a, $i) { $a & $a }, "xxxxxxxxxx"))'],
  ['doubles a text without end', '($f := function($s) { $f($s & $s) }; $f("x"))'],
  ['doubles and capitalises a text', '$uppercase($reduce([1..24], function($a, $i) { $a & $a }, "xxxxxxxxxx"))'],
  ['doubles a list', '$count($reduce([1..40], function($a, $i) { $append($a, $a) }, [1]))'],
  ['backtracks', '$contains("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", /^(a+)+$/)'],
  ['backtracks while replacing', '$replace($pad("a", 60000), /(a|a)*b/, "")'],
  ['backtracks while splitting', '$split($pad("a", 60000), /(a*)*b/)'],
  ['writes a shared graph', '$length($string($reduce([1..26], function($a, $i) { [[$a], [$a]] }, [1])))'],
  ['returns a shared graph', '$reduce([1..30], function($a, $i) { {"l": $a, "r": $a} }, {"x": 1})'],
  ['returns a deep value', '$reduce([1..5000], function($a, $i) { {"a": $a} }, {})'],
  ['recurses in tail position', '($f := function($n) { $f($n + 1) }; $f(0))'],
  ['recurses', '($f := function($n) { 1 + $f($n) }; $f(0))'],
  ['applies itself to itself', '(λ($f) { $f($f) })(λ($f) { $f($f) })'],
  ['computes fib(60)', '($fib := function($n) { $n < 2 ? $n : $fib($n - 1) + $fib($n - 2) }; $fib(60))'],
  ['joins two ranges', '$count([1..3000].[1..3000])'],
  ['joins three ranges', '$sum([1..500].([1..500].([1..500])))'],
  ['asks for ten million numbers', '[1..10000000]'],
  ['asks for a thousand million numbers', '[1..1000000000]'],
  ['maps ranges to ranges', '$map([1..99999], function($x) { [1..9999] })'],
  ['maps to long texts', '$map([1..99999], function($x) { $pad("x", 65536) & $x })'],
  ['maps to encoded texts', '$map([1..99999], function($x) { $base64encode($pad("x", 65536) & $x) })'],
  ['sorts with a comparator that lies', '$sort([1..90000], function($a, $b) { true })'],
  ['finds distinct values in square time', '$count($distinct([1..99999].{"v": $}))'],
  ['evaluates text that evaluates itself', '($t := "$eval($t)"; $eval($t))'],
  ['descends into descendants', '$count(**.**.**.**.**.**.**.**.**.**.**.**)'],
  ['formats with an endless picture', '$formatNumber(1, $pad("0", 65000))'],
  ['parses a date with an endless picture', '$toMillis($pad("1", 60000), $pad("[Y]", 60000, "[Y]"))'],
  ['groups everything by everything', '[1..50000]{$string($): [1..1000]}'],
  ['signs an endless text', '$hmac($reduce([1..26], function($a, $i) { $a & $a }, "xxxxxxxxxx"), "k")'],
  ['fails with an endless message', '$error($reduce([1..24], function($a, $i) { $a & $a }, "xxxxxxxxxx"))'],
  ['throws a shared graph', '$number($string($reduce([1..26], function($a, $i) { [[$a], [$a]] }, [1])))'],
  ['nests defaults in the parser', nested(60, '?:')],
  ['nests coalescing in the parser', nested(60, '??')],
  ['nests parentheses', `${'('.repeat(8_000)}1${')'.repeat(8_000)}`],
  ['nests brackets', '['.repeat(16_000)],
  ['has a path without end', 'a.'.repeat(8_000)],
  ['has parents without end', `${'a.'.repeat(700)}a[${'%.'.repeat(700)}a]`],
  ['is too long', `"${'x'.repeat(17_000)}"`],
].map(([attack = '', text = '']) => ({ attack, text }))

/** Expressions that look for a way out of the language: into prototypes, functions, frames. */
export const ESCAPING: readonly HostileExpression[] = [
  ['constructor', 'constructor'],
  ['constructor of a text', '"x".constructor'],
  ['constructor of a function', '$sum.constructor'],
  ['code through a constructor', '$sum.constructor("return process")()'],
  ['prototype', '__proto__'],
  ['prototype by lookup', '$lookup($, "__proto__")'],
  ['constructor by lookup', '$lookup($, "constructor")'],
  ['prototype as a key', '{"__proto__": {"polluted": 1}}'],
  ['prototype by grouping', '$.{"__proto__": {"polluted": 1}}'],
  ['prototype by transform', '$ ~> |$|{"__proto__": {"polluted": 1}}|'],
  ['prototype by merge', '$merge([{"a": 1}, {"__proto__": {"polluted": 1}}])'],
  ['prototype by nested transform', '$ ~> |__proto__|{"polluted": 1}|'],
  ['constructor by transform', '$ ~> |constructor.prototype|{"polluted": 1}|'],
  ['implementation of a built-in', '$sum.implementation'],
  ['environment of a lambda', 'function($x) { $x }.environment'],
  ['body of a lambda', '(function($x) { $x }).body'],
  ['forged function', '{"_jsonata_function": true, "implementation": "x"}'],
  ['forged lambda', '({"_jsonata_lambda": true, "body": 1, "arguments": []})()'],
  ['keys of a function', '$keys($sum)'],
  ['spread of a function', '$spread($sum)'],
  ['text of a function', '$string($sum)'],
  ['code evaluation', '$eval("1")'],
  ['process by name', '$process'],
  ['global by name', '$globalThis'],
].map(([attack = '', text = '']) => ({ attack, text }))
