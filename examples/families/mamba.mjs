// Mamba, with the names of the original: a selective scan, and the parameters A_log and D beside the layers of a mixer.
import { nn, torch } from 'tensorfx'

const F = torch.nn.functional

class MambaMixer extends nn.Module {
  constructor(width, { state = 4, taps = 3, rank = 2 } = {}) {
    super()
    const inner = 2 * width
    Object.assign(this, { inner, state, rank })
    this.A_log = new nn.Parameter(
      torch
        .arange(1, state + 1)
        .log()
        .repeat(inner, 1),
    )
    this.D = new nn.Parameter(torch.ones([inner]))
    this.in_proj = new nn.Linear(width, 2 * inner, { bias: false })
    this.conv1d = new nn.Conv1d(inner, inner, taps, { groups: inner, padding: taps - 1 })
    this.x_proj = new nn.Linear(inner, rank + 2 * state, { bias: false })
    this.dt_proj = new nn.Linear(rank, inner)
    this.out_proj = new nn.Linear(inner, width, { bias: false })
  }

  forward(input) {
    const [batch, time] = input.shape
    const [wide, gate] = this.in_proj(input).transpose(1, 2).chunk(2, 1)
    const x = F.silu(this.conv1d(wide).narrow(2, 0, time))
    const [low, B, C] = this.x_proj(x.transpose(1, 2)).split([this.rank, this.state, this.state], -1)
    const step = F.softplus(this.dt_proj(low))
    const A = this.A_log.exp().neg()
    let h = torch.zeros([batch, this.inner, this.state])
    const out = []
    for (let t = 0; t < time; t++) {
      const dt = step.select(1, t).unsqueeze(-1)
      const added = dt.mul(B.select(1, t).unsqueeze(1)).mul(x.select(2, t).unsqueeze(-1))
      h = dt.mul(A).exp().mul(h).add(added)
      out.push(h.mul(C.select(1, t).unsqueeze(1)).sum(-1))
    }
    const y = torch.stack(out, 2).add(x.mul(this.D.unsqueeze(1)))
    return this.out_proj(y.mul(F.silu(gate)).transpose(1, 2))
  }
}

class MambaBlock extends nn.Module {
  constructor(width) {
    super()
    this.mixer = new MambaMixer(width)
    this.norm = new nn.RMSNorm(width, { eps: 1e-5 })
  }

  forward(x) {
    return x.add(this.mixer(this.norm(x)))
  }
}

class MambaBackbone extends nn.Module {
  constructor({ vocabulary, width, layers }) {
    super()
    this.embedding = new nn.Embedding(vocabulary, width)
    this.layers = new nn.ModuleList(Array.from({ length: layers }, () => new MambaBlock(width)))
    this.norm_f = new nn.RMSNorm(width, { eps: 1e-5 })
  }

  forward(tokens) {
    let x = this.embedding(tokens)
    for (const layer of this.layers) x = layer(x)
    return this.norm_f(x)
  }
}

export class Mamba extends nn.Module {
  constructor(config) {
    super()
    this.backbone = new MambaBackbone(config)
    this.lm_head = new nn.Linear(config.width, config.vocabulary, { bias: false })
    this.lm_head.weight = this.backbone.embedding.weight
  }

  /** Tokens [batch, time] to scores [batch, time, vocabulary]. */
  forward(tokens) {
    return this.lm_head(this.backbone(tokens))
  }
}

export const families = { mamba: () => new Mamba({ vocabulary: 20, width: 12, layers: 2 }) }
