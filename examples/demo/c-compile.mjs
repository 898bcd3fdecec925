// c. The folded model compiled: its kernels, and its speed against eager.
import { compile, torch } from 'tensorfx'
import { explain } from 'tensorfx/compile'
import { BATCH } from './model.mjs'
import { heading, printBlock, sideBySideInTurns } from './terminal.mjs'

export async function compileFused(fused, data) {
  heading('c. The folded model as fused WebAssembly kernels')
  const images = data.test[0].narrow(0, 0, BATCH).contiguous()
  const explanation = torch.noGrad(() => explain((x) => fused(x))(images))
  printBlock(String(explanation), 12)
  const compiled = compile(fused)
  const result = torch.noGrad(() => compiled(images))
  for (const [i, kernel] of compiled.kernels().entries()) {
    console.log(`\n  kernel ${i}: ${kernel.ops.join(' + ')}`)
    printBlock(kernel.text, 14)
  }
  const reference = torch.noGrad(() => fused(images))
  const difference = result.sub(reference).abs().max().item()
  const [eagerMs, compiledMs] = await sideBySideInTurns([() => torch.noGrad(() => fused(images)), () => torch.noGrad(() => compiled(images))], 300)
  console.log(
    `\n  batch of ${BATCH}: eager ${eagerMs.toFixed(3)} ms, compiled ${compiledMs.toFixed(3)} ms: ${(eagerMs / compiledMs).toFixed(2)}x faster; largest difference ${difference.toExponential(1)}`,
  )
  return { speedup: eagerMs / compiledMs, kernels: compiled.kernels() }
}
