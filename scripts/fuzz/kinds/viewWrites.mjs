// Writes to views while gradients are recorded: the steps of `viewWrites.mjs`, on a tensor that the program computes and on views of it.
import { line } from '../program.mjs'
import { drawStep, evaluator, madeBy } from '../viewWrites.mjs'
import { backwardOfAll } from './gradients.mjs'

/** A tensor that the program has computed, as the base of a family of views: it may have a history, and is no leaf. */
function newBase(w) {
  const usable = (name) => w.value(name).numel > 0
  const x = w.float((name) => usable(name) && w.value(name).requiresGrad) ?? w.float(usable)
  const name = x === undefined ? null : w.define(`${x}.clone()`)
  if (name !== null) w.state.family.push({ name, shape: w.shape(name), isRepeated: false, isCut: false })
}

/** Writes one step. Returns whether there was one. */
function writeStep(w) {
  const { random, state } = w
  const { family } = state
  const step = drawStep(random, family)
  const target = family[step.on]
  const x = target.name
  if (step.what === 'read') return w.define(`${x}.clone().sin().sum()`, [x]) !== null
  if (step.what === 'change') {
    if (!w.statement(step.inPlace(x))) return false
    target.shape = w.shape(x)
    return true
  }
  if (step.what === 'write') {
    const source = w.float((name) => w.value(name).requiresGrad)
    const s = source === undefined ? `torch.full([], ${step.scale}, { dtype: ${x}.dtype })` : `${source}.mean().tanh().to(${x}.dtype)`
    const code = step.inPlace(x, s, `${family[step.other].name}.clone()`)
    return w.statement(step.isSilent ? `noGrad(() => ${code})` : code)
  }
  const made = madeBy(step, target, w.value(x), state.evaluate)
  if (made === null) return false
  step.views.forEach((view, i) => {
    const name = w.define(view(x), [x])
    if (name !== null) family.push({ ...made[i], name })
  })
  return true
}

export const viewWrites = {
  setup(w) {
    w.state.family = []
    w.state.evaluate = evaluator(w.api)
  },
  tensors(w, list) {
    if (!list.some((t) => t.alias !== undefined)) list[0].grad = true
  },
  write(w) {
    const { random, state } = w
    // Names of an inner block are gone after it.
    state.family = state.family.filter(({ name }) => w.tensors.includes(name))
    if (state.family.length === 0 || random.chance(0.15)) newBase(w)
    if (state.family.length === 0) return false
    let count = 0
    for (let i = 0; i < 5; i++) if (writeStep(w)) count++
    return count > 0
  },
  // Whatever is read of the memory afterwards has the writes.
  finish(w) {
    const names = w.state.family.map(({ name }) => name).filter((name) => w.tensors.includes(name))
    if (names.length > 0) w.define(names.map((name) => `${name}.clone().sin().sum().float()`).reduce((sum, term) => `${sum}.add(${term})`))
  },
  after(w) {
    // The kind `gradients` has a backward, too, and a second one through the same tape is an error.
    if (!w.program.kinds.includes('gradients')) w.push(line(backwardOfAll))
  },
}
