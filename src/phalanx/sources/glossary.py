"""English for the words by which reports in Chinese, Japanese and Korean tell of trouble, so that one set of expressions reads them all."""

from __future__ import annotations

import re

from phalanx.model.lazy import lazy

_ENGLISH = {
    # what stands still, breaks, is slow or wrong
    "卡住": "hangs", "卡死": "hangs", "卡主": "hangs", "卡在": "stuck at", "不动了": "hangs", "一直不动": "hangs", "没有反应": "no response",
    "没反应": "no response", "挂起": "hangs", "一直在等待": "waits forever", "一直等待": "waits forever", "不跑了": "hangs", "死在": "hangs at", "不再继续": "does not continue", "停止": "stops", "停掉": "stops", "停在": "stops at", "占用": "occupied", "死锁": "deadlock", "超时": "timeout", "报错": "error", "出错": "error", "错误": "error",
    "失败": "failed", "无法": "cannot", "不能": "cannot", "不了": "cannot", "没法": "cannot", "崩溃": "crash", "异常": "exception",
    "中断": "stops with an error", "太慢": "slow", "很慢": "slow", "变慢": "slower", "更慢": "slower", "速度慢": "slow", "慢很多": "slower",
    "不收敛": "does not converge", "不下降": "does not decrease", "保持不变": "does not change", "没有变化": "does not change", "不变": "does not change", "下降": "drops", "降低": "drops", "变低": "drops", "减小": "drops", "减少": "drops", "不一致": "different",
    "不一样": "different", "不同步": "not synchronized", "不均衡": "unbalanced", "不均": "unbalanced", "不匹配": "mismatch", "不支持": "not supported",
    "找不到": "cannot find", "段错误": "segmentation fault", "内存泄漏": "memory leak", "不足": "not enough", "爆显存": "out of memory",
    "溢出": "out of memory", "泄漏": "leak", "缺少": "missing", "增长": "increases", "增加": "increases", "上涨": "increases", "一直": "keeps", "退出": "exit",
    # what it is about
    "训练": "training", "微调": "finetuning", "模型": "model", "权重": "weights", "参数": "parameters", "梯度": "gradients", "损失": "loss",
    "精度": "accuracy", "准确率": "accuracy", "结果": "results", "速度": "speed", "显存": "gpu memory", "内存": "memory", "显卡": "gpus",
    "多卡": "multi-gpu", "多gpu": "multi-gpu", "多GPU": "multi-gpu", "单gpu": "single gpu", "单GPU": "single gpu", "实现": "do", "单卡": "single gpu", "双卡": "two gpus", "多机": "multi-node", "单机": "single node", "两台": "two machines",
    "节点": "nodes", "进程": "process", "分布式": "distributed", "数据集": "dataset", "预处理": "preprocessing", "分词": "tokenization", "数据": "data", "加载": "loading", "读取": "reading",
    "保存": "saving", "断点": "checkpoint", "恢复": "resume", "安装": "install", "编译": "compile", "导入": "import", "连接": "connection",
    "通信": "communication", "初始化": "initialization", "启动": "start", "验证": "validation", "评估": "evaluation", "推理": "inference",
    "只有": "only", "只用": "uses only", "一张卡": "one gpu", "一块卡": "one gpu", "第一张": "the first", "利用率": "utilization", "终止": "terminated", "未释放": "not released", "不释放": "not released", "残留": "left behind", "僵尸进程": "zombie process", "使用率": "utilization",
    # Japanese and Korean
    "エラー": "error", "失敗": "failed", "できません": "cannot", "できない": "cannot", "止まる": "hangs", "止まって": "hangs", "遅い": "slow",
    "学習": "training", "メモリ不足": "out of memory", "メモリ": "memory", "複数": "multiple", "에러": "error", "오류": "error", "실패": "failed",
    "멈춤": "hangs", "멈춥니다": "hangs", "느려": "slow", "학습": "training", "메모리 부족": "out of memory", "메모리": "memory",
}  # fmt: skip
_KNOWN = lazy("|".join(sorted(map(re.escape, _ENGLISH), key=len, reverse=True)))
_IDEOGRAMS = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_SIGN = lazy(f"[{_IDEOGRAMS}]")
# Programs' names are written into the sentence without a space: "loss为NaN".
_SEAM = lazy(f"(?<=[{_IDEOGRAMS}])(?=[0-9A-Za-z])|(?<=[0-9A-Za-z%])(?=[{_IDEOGRAMS}])")


def has_ideograms(text: str, fewest: int = 1) -> bool:
    """Whether at least so many signs of these languages are in the text."""
    return not text.isascii() and sum(1 for _ in _SIGN.finditer(text[:2000])) >= fewest


def with_english(text: str) -> str:
    """The text, and behind it the same with the English of each known word in its place."""
    if text.isascii() or not _SIGN.search(text):
        return text
    english = _SEAM.sub(" ", _KNOWN.sub(lambda match: f" {_ENGLISH[match[0]]} ", text))
    return f"{text} {english}"
