// Functional collectives as the goldens trace, differentiate and compile them.
import { compile, torch } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import * as dist from 'tensorfx/distributed'
import { input } from './data.mjs'
import { tensor } from './helpers.mjs'

const f = dist.functional
const own = (shape = [4, 3]) => input(shape, 60 + dist.getRank())

const CASES = {
  all_reduce: (a) => f.allReduce(a).mul(2),
  all_reduce_avg: (a) => f.allReduce(a, 'avg'),
  all_gather_tensor0: (a) => f.allGatherTensor(a, 0),
  all_gather_tensor1: (a) => f.allGatherTensor(a, 1),
  reduce_scatter_tensor: (a) => f.reduceScatterTensor(a),
  all_to_all_single: (a) => f.allToAllSingle(a),
  broadcast: (a) => f.broadcast(a, 1),
  two: (a) => f.allReduce(a).add(f.allReduce(a.add(1), 'max')),
}

/** The recording takes other numbers where each rank has rows of its own. */
const inputOf = (name) => (/^(reduce_scatter|all_to_all)/.test(name) ? input([2 * dist.getWorldSize(), 3], 61 + dist.getRank()) : own())

export const traced = () =>
  Object.fromEntries(
    Object.entries(CASES).map(([name, fn]) => {
      const graph = makeFx(fn)(inputOf(name))
      return [name, { value: tensor(fn(inputOf(name))), again: tensor(graph(inputOf(name))), graph: String(graph.graph) }]
    }),
  )

/** Of the sum of a result, weighted by the rank. */
export const differentiated = () =>
  Object.fromEntries(
    Object.entries({
      all_gather_tensor_autograd: (a) => f.allGatherTensor(a, 0),
      reduce_scatter_tensor_autograd: (a) => f.reduceScatterTensor(a),
      all_to_all_single_autograd: (a) => f.allToAllSingle(a),
      all_reduce: (a) => f.allReduce(a),
      all_gather: (a) => f.allGatherTensor(a, 0),
    }).map(([name, fn]) => {
      const a = inputOf(name).requiresGrad_()
      const value = fn(a)
      // The recording counts the parts of a gathering by the rank that they are from.
      const weights = torch
        .arange(1, dist.getWorldSize() + 1)
        .repeatInterleave(4)
        .view([-1, 1])
      const counted = name === 'all_gather' ? value.mul(weights) : value
      counted
        .mul(dist.getRank() + 1)
        .sum()
        .backward()
      return [name, { value: tensor(value), grad: tensor(a.grad) }]
    }),
  )

/** An in-place collective and a functional one, captured: the results, the captured graphs, and the argument that was written to. */
export function compiled() {
  const graphs = []
  const backend = (module) => {
    graphs.push(String(module.graph))
    return module
  }
  const fns = {
    inPlace: (a) => {
      dist.allReduce(a)
      return a.mul(2)
    },
    functional: (a) => f.allReduce(a).mul(2),
  }
  return Object.fromEntries(
    Object.entries(fns).map(([name, fn]) => {
      graphs.length = 0
      const captured = compile(fn, { backend })
      const [first, second] = [own(), own()]
      const value = tensor(captured(first))
      const result = { graphs: [...graphs], value, argument: tensor(first) }
      return [name, { ...result, kernels: tensor(compile(fn)(second)) }]
    }),
  )
}

/** A collective whose result is not used still runs on all ranks. */
export function unused() {
  const fn = compile((a) => {
    f.allReduce(a)
    return a.add(1)
  })
  dist.resetCollectiveStats()
  fn(torch.ones([2]))
  fn(torch.ones([2]))
  return dist.collectiveStats().allreduce?.calls ?? 0
}
