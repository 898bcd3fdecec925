// Loops as people write them, each compiled as it is: how many graphs that takes, and the time against eager. The table of docs/guide/compile.md.
//
//   npm run build && node --expose-gc bench/loops.mjs
import './oneThread.mjs'
import { fileURLToPath } from 'node:url'
import { compile, nn, noGrad, optim, torch } from 'tensorfx'
import { sideBySideInTurns } from '../examples/demo/terminal.mjs'

const [BATCH, INPUTS, HIDDEN, CLASSES] = [64, 64, 256, 10]

function setup(c, { lr = 0.01, Optimizer = optim.AdamW } = {}) {
  torch.manualSeed(1)
  const model = new nn.Sequential(
    new nn.Linear(INPUTS, HIDDEN),
    new nn.ReLU(),
    new nn.Linear(HIDDEN, HIDDEN),
    new nn.ReLU(),
    new nn.Linear(HIDDEN, CLASSES),
  )
  const optimizer = new Optimizer(model.parameters(), { lr })
  const x = torch.randn([BATCH, INPUTS])
  const y = torch.randint(0, CLASSES, [BATCH])
  return { c, model, optimizer, x, y, lossOf: (input, target) => torch.nn.functional.crossEntropy(model(input), target) }
}

/** `make(c)` returns a step, which takes its number, and what it leaves behind. `c` compiles a function, or leaves it as it is. */
export const loops = [
  {
    name: 'a training step',
    make(c) {
      const { model, optimizer, x, y, lossOf } = setup(c)
      const step = c(() => {
        optimizer.zeroGrad()
        const loss = lossOf(x, y)
        loss.backward()
        optimizer.step()
        return loss.detach()
      })
      return { step, state: () => [...model.parameters()] }
    },
  },
  {
    name: 'the loss is printed at every 10th step',
    make(c) {
      const { model, optimizer, x, y, lossOf } = setup(c)
      const log = []
      const step = c((i) => {
        optimizer.zeroGrad()
        const loss = lossOf(x, y)
        if (i % 10 === 0) log.push(loss.item())
        loss.backward()
        optimizer.step()
      })
      return { step, state: () => [...model.parameters(), ...log.slice(0, 3)] }
    },
  },
  {
    name: 'gradients are clipped, and their norm is kept',
    make(c) {
      const { model, optimizer, x, y, lossOf } = setup(c)
      const norms = []
      const step = c(() => {
        optimizer.zeroGrad()
        lossOf(x, y).backward()
        norms.push(nn.utils.clipGradNorm_(model.parameters(), 1))
        optimizer.step()
      })
      return { step, state: () => [...model.parameters(), ...norms.slice(0, 12)] }
    },
  },
  {
    name: 'a moving average of the weights',
    make(c) {
      const { model, optimizer, x, y, lossOf } = setup(c)
      const average = [...model.parameters()].map((p) => p.detach().clone())
      const step = c(() => {
        optimizer.zeroGrad()
        lossOf(x, y).backward()
        optimizer.step()
        noGrad(() => [...model.parameters()].forEach((p, i) => average[i].lerp_(p, 0.1)))
      })
      return { step, state: () => average }
    },
  },
  {
    name: 'a schedule changes the learning rate',
    make(c) {
      const { model, optimizer, x, y, lossOf } = setup(c, { Optimizer: optim.SGD })
      const schedule = new optim.StepLR(optimizer, 3, { gamma: 0.9 })
      const step = c(() => {
        optimizer.zeroGrad()
        lossOf(x, y).backward()
        optimizer.step()
        schedule.step()
      })
      return { step, state: () => [...model.parameters()] }
    },
  },
  {
    name: 'gradients of 4 batches are accumulated',
    make(c) {
      const { model, optimizer, x, y, lossOf } = setup(c)
      const step = c((i) => {
        lossOf(x, y).div(4).backward()
        if (i % 4 !== 3) return
        optimizer.step()
        optimizer.zeroGrad()
      })
      return { step, state: () => [...model.parameters()] }
    },
  },
  {
    name: 'layers exit early if their output is small',
    make(c) {
      torch.manualSeed(1)
      const layers = Array.from({ length: 4 }, () => new nn.Linear(HIDDEN, HIDDEN))
      const inputs = [0.1, 1, 10].map((scale) => torch.randn([BATCH, HIDDEN]).mul(scale))
      const outputs = []
      const step = c((i) => {
        noGrad(() => {
          let h = inputs[i % inputs.length]
          for (const layer of layers) {
            h = layer(h).relu()
            if (h.mean().item() < 0.05) break
          }
          outputs[i % inputs.length] = h
        })
      })
      return { step, state: () => outputs }
    },
  },
  {
    name: 'losses are kept and read at the end',
    make(c) {
      const { optimizer, x, y, lossOf } = setup(c)
      const losses = []
      const step = c(() => {
        optimizer.zeroGrad()
        const loss = lossOf(x, y)
        losses.push(loss.detach())
        loss.backward()
        optimizer.step()
      })
      return { step, state: () => losses.slice(0, 12) }
    },
  },
  {
    name: 'an evaluation after every 5th step',
    make(c) {
      const { model, optimizer, x, y, lossOf } = setup(c)
      const scores = []
      const step = c((i) => {
        model.train()
        optimizer.zeroGrad()
        lossOf(x, y).backward()
        optimizer.step()
        if (i % 5 !== 4) return
        model.eval()
        noGrad(() => scores.push(model(x).argmax(1).eq(y).to('float32').mean()))
      })
      return { step, state: () => [...model.parameters(), ...scores.slice(0, 3)] }
    },
  },
  {
    name: 'a cache that grows with every call',
    // Its sizes are part of the graph, so the first calls compile, and the others run eagerly.
    grows: true,
    make(c) {
      torch.manualSeed(1)
      class Attention extends nn.Module {
        keys = null
        forward(x) {
          this.keys = this.keys === null ? x.tanh() : torch.cat([this.keys, x.tanh()])
          return torch.matmul(torch.matmul(x, this.keys.t()).softmax(-1), this.keys)
        }
      }
      const attention = new Attention()
      const x = torch.randn([1, HIDDEN])
      let last = null
      const run = c((input) => noGrad(() => attention(input)))
      const step = () => {
        last = run(x)
      }
      return { step, state: () => [last, attention.keys] }
    },
  },
]

/** The step of a loop, compiled, with the number of its graphs. */
export function compiled(loop, options = {}) {
  let graphs = () => 0
  const made = loop.make((fn) => {
    const fast = compile(fn, options)
    graphs = () => fast.graphs().length
    return fast
  })
  return { ...made, graphs: () => graphs() }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const loop of loops) {
    const [eager, fast] = [loop.make((fn) => fn), compiled(loop)]
    const counts = [0, 0]
    const steps = [() => eager.step(counts[0]++), () => fast.step(counts[1]++)]
    const rounds = 300
    // The engine compiles hot functions in the background for some hundred rounds.
    if (loop.grows !== true) await sideBySideInTurns(steps, 500)
    const [slow, quick] = await sideBySideInTurns(steps, rounds)
    console.log(`| ${loop.name} | ${fast.graphs()} | ${(slow / quick).toFixed(2)}x |`)
  }
}
