// Replay alone: a chain of 300 operators whose compiled form returns its input. Lengths that were seen before, and new ones, next to one path for one length.
import { compile, noGrad, torch } from 'tensorfx'
import { median } from '../../examples/demo/terminal.mjs'

const OPERATORS = 300
const ROUNDS = 7
const CALLS = 64

const chain = (x) => {
  for (let i = 0; i < OPERATORS; i++) x = x.add(1)
  return x
}
const backend = (_gm, inputs) => (first) => [inputs.length > 0 ? first : null]
const compiled = { static: compile(chain, { backend, dynamic: false }), dynamic: compile(chain, { backend, dynamic: true }) }
const seen = Array.from({ length: CALLS }, (_, i) => torch.ones([2 + i]))
let next = 2 + CALLS

/** Microseconds of a call. */
function timed(f, inputs) {
  const start = performance.now()
  noGrad(() => {
    for (const input of inputs) f(input)
  })
  return ((performance.now() - start) / inputs.length) * 1000
}

const fixed = seen.map(() => seen[0])
const fresh = () => Array.from({ length: CALLS }, () => torch.ones([next++]))
for (let i = 0; i < 20; i++) {
  timed(compiled.static, fixed)
  timed(compiled.dynamic, seen)
  timed(compiled.dynamic, fresh())
}
const times = { static: [], seen: [], fresh: [] }
for (let i = 0; i < ROUNDS; i++) {
  times.static.push(timed(compiled.static, fixed))
  times.seen.push(timed(compiled.dynamic, seen))
  times.fresh.push(timed(compiled.dynamic, fresh()))
}
process.send(Object.fromEntries(Object.entries(times).map(([what, values]) => [what, median(values)])))
process.disconnect()
