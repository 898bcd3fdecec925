"""Records what generation must give, into test/goldens/families/generation.json: probabilities after temperature, top-k and top-p; texts of the recorded GPT-2 and T5, greedy and by beams,
without any cache; and the state dicts of networks that torchvision publishes. Needs torch, torchvision and numpy, and the weights that record.py saves.

    python3 generation.py
"""
import hashlib
import json

import torch
import torchvision

from record import GOLDENS, floats, stored, tokens
from transformers import GPT2, T5


def probabilities(scores, temperature=1.0, top_k=0, top_p=1.0):
    """The rule of Hugging Face's warpers: ascending, tokens leave as long as those below and they have no more than 1 - top_p."""
    scores = scores / temperature
    if top_k > 0:
        scores = scores.masked_fill(scores < torch.topk(scores, top_k)[0][..., -1, None], -float('inf'))
    if top_p < 1:
        ordered, order = torch.sort(scores, descending=False)
        out = ordered.softmax(-1).cumsum(-1) <= 1 - top_p
        out[..., -1:] = False
        scores = scores.masked_fill(out.scatter(1, order, out), -float('inf'))
    return scores.softmax(-1)


def greedy(step, text, count):
    for _ in range(count):
        text = torch.cat([text, step(text)[:, -1].argmax(-1, keepdim=True)], 1)
    return text.tolist()


def beams(step, text, count, width, penalty, eos):
    """One text at a time, with lists: a text that ends is kept with its score, and nothing is given up early."""
    results = []
    for row in range(text.shape[0]):
        start = text[row].tolist()
        live, found = [([], 0.0)], []
        for _ in range(count):
            candidates = []
            for written, total in live:
                logarithms = step(torch.tensor([start + written]), row)[0, -1].log_softmax(-1)
                candidates += [(written + [token], total + logarithm) for token, logarithm in enumerate(logarithms.tolist())]
            candidates = sorted(candidates, key=lambda c: -c[1])[: 2 * width]
            live = []
            for rank, (written, total) in enumerate(candidates):
                if written[-1] == eos:
                    if rank < width:
                        found.append((total / len(written) ** penalty, written))
                elif len(live) < width:
                    live.append((written, total))
            found = sorted(found, key=lambda f: -f[0])[:width]
            if len(found) == width and found[-1][0] >= live[0][1] / len(live[0][0]) ** penalty:
                live = []
                break
        found += [(total / len(written) ** penalty, written) for written, total in live]
        results.append(max(found, key=lambda f: f[0])[1])
    return results


def digest(model):
    text = '\n'.join(f'{name} {list(t.shape)}' for name, t in model.state_dict().items())
    return {'tensors': len(model.state_dict()), 'parameters': sum(p.numel() for p in model.parameters()), 'sha256': hashlib.sha256(text.encode()).hexdigest()}


if __name__ == '__main__':
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    gpt2 = GPT2().eval()
    gpt2.load_state_dict(torch.load(GOLDENS / 'gpt2.pt'))
    t5 = T5().eval()
    t5.load_state_dict(torch.load(GOLDENS / 't5.pt'))
    scores = floats((4, 16), 5) * 4
    filters = [{'temperature': 0.5}, {'topK': 3}, {'topP': 0.8}, {'temperature': 1.7, 'topK': 7, 'topP': 0.6}, {'topP': 0.05}]
    spelled = {'temperature': 'temperature', 'topK': 'top_k', 'topP': 'top_p'}
    prompt, source, start = tokens((3, 4), 7, 24), tokens((2, 9), 1, 24), torch.tensor([[0], [0]])
    searches = [{'numBeams': 3, 'lengthPenalty': 1}, {'numBeams': 4, 'lengthPenalty': 0, 'eosTokenId': 5}, {'numBeams': 2, 'lengthPenalty': 2, 'eosTokenId': 11}]
    record = {
        'torch': torch.__version__,
        'scores': stored(scores),
        'filters': [{'options': f, 'probabilities': stored(probabilities(scores, **{spelled[k]: v for k, v in f.items()}))} for f in filters],
        'prompt': stored(prompt),
        'greedy': greedy(gpt2, prompt, 8),
        'beams': [
            {'options': s, 'texts': beams(lambda text, row: gpt2(text), prompt, 6, s['numBeams'], s['lengthPenalty'], s.get('eosTokenId'))} for s in searches
        ],
        't5': {'source': stored(source), 'greedy': greedy(lambda text: t5(source, text), start, 6),
               'beams': beams(lambda text, row: t5(source[row : row + 1], text), start, 6, 3, 1, None)},
        'published': {name: digest(getattr(torchvision.models, name)()) for name in ('resnet18', 'resnet50', 'mobilenet_v3_small', 'efficientnet_b0')},
    }
    (GOLDENS / 'generation.json').write_text(json.dumps(record, separators=(',', ':')) + '\n')
