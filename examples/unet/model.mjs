// A small UNet: two levels down by strided convolutions, two up by transposed ones. What a level on the way down has found is handed over to the same level on the way
// up, so that the result is sharp although the middle sees only 2x2 places.
import { nn, torch } from 'tensorfx'

const layer = (from, to, options) => new nn.Sequential(new nn.Conv2d(from, to, 3, { padding: 1, ...options }), new nn.GroupNorm(4, to), new nn.SiLU())

export class UNet extends nn.Module {
  constructor(width) {
    super()
    this.first = layer(1, width)
    this.down1 = layer(width, 2 * width, { stride: 2 })
    this.down2 = layer(2 * width, 4 * width, { stride: 2 })
    this.middle = layer(4 * width, 4 * width)
    this.up1 = new nn.ConvTranspose2d(4 * width, 2 * width, 2, { stride: 2 })
    this.join1 = layer(4 * width, 2 * width)
    this.up2 = new nn.ConvTranspose2d(2 * width, width, 2, { stride: 2 })
    this.join2 = layer(2 * width, width)
    this.last = new nn.Conv2d(width, 1, 1)
  }

  /** Noisy images [batch, 1, height, width] to clean ones; height and width are multiples of 4. */
  forward(x) {
    const a = this.first(x)
    const b = this.down1(a)
    const c = this.middle(this.down2(b))
    const d = this.join1(torch.cat([this.up1(c), b], 1))
    const e = this.join2(torch.cat([this.up2(d), a], 1))
    return x.sub(this.last(e)) // the network says what the noise is
  }
}
