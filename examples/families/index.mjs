// Every family by its name: a function that makes a small model of it.
import { families as bert } from './bert.mjs'
import { families as clip } from './clip.mjs'
import { families as convnext } from './convnext.mjs'
import { families as densenet } from './densenet.mjs'
import { families as gpt2 } from './gpt2.mjs'
import { families as llama } from './llama.mjs'
import { families as mamba } from './mamba.mjs'
import { families as mobilenet } from './mobilenet.mjs'
import { families as regnet } from './regnet.mjs'
import { families as resnet } from './resnet.mjs'
import { families as shufflenet } from './shufflenet.mjs'
import { families as swin } from './swin.mjs'
import { families as t5 } from './t5.mjs'
import { families as unet } from './unet.mjs'
import { families as vgg } from './vgg.mjs'
import { families as vit } from './vit.mjs'
import { families as whisper } from './whisper.mjs'

export const families = {
  ...gpt2,
  ...llama,
  ...bert,
  ...t5,
  ...whisper,
  ...clip,
  ...mamba,
  ...unet,
  ...resnet,
  ...vgg,
  ...densenet,
  ...mobilenet,
  ...convnext,
  ...shufflenet,
  ...regnet,
  ...vit,
  ...swin,
}
