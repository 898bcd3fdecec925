// What compareBackends says of a planted fault, on the graph and the values where it shows.
import { faultyBackend, operatorOf } from './faulty.mjs'
import { MEMORY_KINDS, differ, isBackward } from './plan.mjs'
import { runProgram } from './models.mjs'
import { rightBackend } from './right.mjs'

/** The first run of a graph in which the fault shows: { gm, inputs }; null if there is none. */
function firstWrongRun(api, { program, fault }) {
  // What needs several runs, or comes and goes, is not for a comparison that runs a node once.
  if (fault.from !== undefined || fault.rate !== undefined || MEMORY_KINDS.includes(fault.kind)) return null
  let found = null
  const copy = (value) => (value instanceof api.Tensor ? api.noGrad(() => value.detach().clone()) : value)
  runProgram(api, program, (gm) => {
    const original = gm.deepCopy()
    const wrong = faultyBackend(api, { ...fault, from: 1, rate: 1 })(gm.deepCopy())
    return (...inputs) => {
      const given = inputs.map(copy)
      const theirs = inputs.map(copy)
      const right = gm.forward(...inputs)
      if (found !== null) return right
      try {
        const got = wrong(...theirs)
        if (differ(api, [...[right].flat(), ...given].map(copy), [...[got].flat(), ...theirs].map(copy))) found = { gm: original, inputs: given }
      } catch {
        found = { gm: original, inputs: given }
      }
      return right
    }
  })
  return found
}

/** What is wrong with the answer of compareBackends; null if it names the operator, undefined where the fault cannot be seen. */
export async function comparedWrongly(api, drawn) {
  const shown = firstWrongRun(api, drawn)
  if (shown === null) return undefined
  const { fault } = drawn
  const suspect = faultyBackend(api, fault)
  const result = await api.debug.compareBackends(shown.gm, shown.inputs, { backends: ['eager', (gm) => suspect(gm)] })
  const [[, eager], [, culprit]] = [...result.culprits]
  if (eager !== null) return `eager is blamed: ${eager.nodes.map((node) => node.name)}`
  if (culprit === null) return `nothing is blamed, in a ${isBackward(shown.gm) ? 'backward' : 'forward'} graph (${result.notes.join(' ')})`
  const names = culprit.nodes.map(operatorOf)
  if (!names.includes(fault.operator)) return `${names.join(', ')} instead of ${fault.operator}`
  return culprit.nodes.length > (fault.producer === undefined ? 2 : 3) ? `a block of ${culprit.nodes.length} nodes` : null
}

/** What compareBackends says against a right backend, on the graphs of a program; null if it is right. */
export async function blamedWrongly(api, { program, backend }) {
  const graphs = []
  const copy = (value) => (value instanceof api.Tensor ? api.noGrad(() => value.detach().clone()) : value)
  runProgram(api, { ...program, calls: 1 }, (gm) => (...inputs) => {
    graphs.push({ gm: gm.deepCopy(), inputs: inputs.map(copy) })
    return gm.forward(...inputs)
  })
  for (const { gm, inputs } of graphs) {
    const backends = ['eager', typeof backend === 'string' ? backend : rightBackend(api, backend)]
    // oxlint-disable-next-line no-await-in-loop -- one graph after the other
    const { culprits } = await api.debug.compareBackends(gm, inputs, { backends: [...new Set(backends)] })
    for (const [name, culprit] of culprits) if (culprit !== null) return `${name}: ${culprit.nodes.map(operatorOf)} (error ${culprit.error})`
  }
  return null
}
