// b. The traced graph, and batch norm folded into the convolutions.
import { fx, torch } from 'tensorfx'
import { fuse } from 'tensorfx/fx/experimental'
import { accuracy } from './model.mjs'
import { heading, printBlock } from './terminal.mjs'

export function traceAndFuse(model, data) {
  heading('b. The model as a graph, and batch norm folded into the convolutions')
  const traced = fx.symbolicTrace(model)
  printBlock(traced.graph.printTabular({ print: false }))
  console.log('\n  The code generated from it:\n')
  printBlock(traced.code)
  const fused = fuse(model)
  console.log('\n  After fuse():\n')
  printBlock(fused.code)
  const before = torch.noGrad(() => model(data.test[0]))
  const after = torch.noGrad(() => fused(data.test[0]))
  const difference = before.sub(after).abs().max().item()
  const equal = torch.allclose(before, after, { rtol: 1e-3, atol: 1e-4 })
  if (!equal) throw new Error(`the fused model differs by ${difference}`)
  console.log(
    `\n  ${traced.graph.nodes.length} nodes before, ${fused.graph.nodes.length} after; on the ${data.test[0].shape[0]} test digits the largest difference is ${difference.toExponential(1)}`,
  )
  console.log(`  accuracy before ${(100 * accuracy(model, data.test)).toFixed(2)}%, after ${(100 * accuracy(fused, data.test)).toFixed(2)}%`)
  return { traced, fused }
}
