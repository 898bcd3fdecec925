// a. Train with compile over the whole training step.
import { compile } from 'tensorfx'
import { accuracy, BATCH, makeTraining, shuffled } from './model.mjs'
import { heading, progress, sideBySideInTurns } from './terminal.mjs'

export async function train(data) {
  heading('a. Training: forward, loss, backward and AdamW in one compiled function')
  const { model, step } = makeTraining(1)
  const compiledStep = compile(step)
  const epochs = 8
  const curve = []
  const bar = progress('training', epochs * data.batchesPerEpoch)
  const start = performance.now()
  let count = 0
  for (let epoch = 0; epoch < epochs; epoch++) {
    const order = shuffled(data.trainCount, epoch + 1)
    for (let b = 0; b < data.batchesPerEpoch; b++) {
      const [images, labels] = data.batch(order.slice(b * BATCH, (b + 1) * BATCH))
      const loss = compiledStep(images, labels)
      count++
      if (count % 11 === 0) curve.push({ step: count, loss: loss.item() })
    }
    model.eval()
    const acc = accuracy(model, data.test)
    model.train()
    curve.push({ step: count, loss: curve.at(-1).loss, accuracy: acc })
    bar.update(count, `loss ${curve.at(-1).loss.toFixed(4)}, test accuracy ${(100 * acc).toFixed(1)}%`)
    await new Promise((resolve) => setImmediate(resolve))
  }
  bar.stop()
  const seconds = (performance.now() - start) / 1000
  model.eval()
  const final = accuracy(model, data.test)
  console.log(`  trained ${count} steps in ${seconds.toFixed(1)} s; test accuracy ${(100 * final).toFixed(2)}%`)

  // Eager and compiled side by side, on twins that start alike.
  const eager = makeTraining(2)
  const twin = makeTraining(2)
  const twinStep = compile(twin.step)
  const [images, labels] = data.batch(shuffled(data.trainCount, 9).slice(0, BATCH))
  let a
  let b
  const [eagerMs, compiledMs] = await sideBySideInTurns([() => (a = eager.step(images, labels)), () => (b = twinStep(images, labels))], 60)
  console.log(`  one step: eager ${eagerMs.toFixed(3)} ms, compiled ${compiledMs.toFixed(3)} ms: ${(eagerMs / compiledMs).toFixed(2)}x faster`)
  console.log(`  after 63 steps the eager loss is ${a.item().toFixed(6)}, the compiled loss ${b.item().toFixed(6)}`)
  return { model, curve, accuracy: final, speedup: eagerMs / compiledMs, seconds }
}
