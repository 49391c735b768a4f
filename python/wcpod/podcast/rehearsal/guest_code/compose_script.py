# mypy: ignore-errors
import json

outline = json.loads("INPUT_outline")
day = json.loads("INPUT_day")
notes_wanted = json.loads("INPUT_notes")

NAMES = {
    "Portugal": "葡萄牙队", "Croatia": "克罗地亚队", "Netherlands": "荷兰队", "Japan": "日本队",
    "Senegal": "塞内加尔队", "Norway": "挪威队", "Mexico": "墨西哥队", "South Korea": "韩国队",
    "Argentina": "阿根廷队", "Brazil": "巴西队", "France": "法国队", "England": "英格兰队",
    "Spain": "西班牙队", "Germany": "德国队", "Morocco": "摩洛哥队", "Canada": "加拿大队",
    "United States": "美国队", "Belgium": "比利时队", "Uruguay": "乌拉圭队", "Australia": "澳大利亚队",
    "Ivan Brekalo": "布雷卡洛", "Tiago Duarte": "杜阿尔特", "Rui Salgado": "萨尔加多",
    "Daan Verhoef": "费尔胡夫", "Kenji Morita": "森田健司", "Erik Solberg": "索尔贝格", "Mats Haugen": "豪根",
    "Houston Stadium": "休斯敦体育场", "Dallas Stadium": "达拉斯体育场",
    "New York New Jersey Stadium": "纽约新泽西体育场", "Guadalajara Stadium": "瓜达拉哈拉体育场",
    "header": "头球破门", "penalty": "罚进点球", "long shot": "在禁区外远射得手", "tap-in": "在门前抢点得分",
    "free-kick": "用一记直接任意球破门", "volley": "凌空抽射破门",
    "hamstring": "大腿后侧肌肉拉伤", "ankle": "脚踝扭伤", "knee": "膝盖受伤", "illness": "身体不适",
}  # fmt: skip

NOTES = [
    "这届世界杯由美国、加拿大和墨西哥共同承办，三个国家联合举办世界杯，这在历史上还是第一次。",
    "参赛球队从三十二支增加到四十八支，分成十二个小组，每个小组四支球队。",
    "每个小组的前两名直接出线，另外还有八支成绩最好的小组第三名，也能进入三十二强。",
    "全部比赛一共一百零四场，比上一届多出整整四十场。",
    "承办比赛的城市一共有十六座，其中美国十一座，墨西哥三座，加拿大两座。",
    "揭幕战的场地是墨西哥城的阿兹特克球场，它也是第一座三次迎来世界杯的球场。",
    "决赛定在七月十九日，地点是纽约新泽西体育场。",
    "因为多了一轮淘汰赛，最后捧起奖杯的球队要踢满八场比赛，比以前多一场。",
    "小组赛里，赢一场得三分，打平各得一分，积分相同就要比较相互之间的成绩和净胜球。",
    "到了淘汰赛，九十分钟打平就要进入加时赛，再不分胜负，就用点球大战来决定谁能晋级。",
    "每支球队可以带二十六名球员，比赛当天都能坐上替补席，教练的选择比以前多了不少。",
    "赛会期间，所有球场都用城市来命名，所以您会发现，有些熟悉的球场换了名字。",
    "从东岸到西岸，各座城市之间有好几个小时的时差，对球迷来说，看球也是一门安排时间的学问。",
    "上一届冠军是阿根廷队，他们在卡塔尔的决赛里，靠点球大战捧起了奖杯。",
    "到现在为止，一共只有八个国家拿过世界杯冠军，其中巴西队拿得最多，一共五次。",
    "墨西哥上一次承办世界杯，是在一九八六年，美国上一次，是在一九九四年。",
]

DIGITS = "零一二三四五六七八九"


def name(text):
    return NAMES.get(text, text)


def number(value):
    """A number below one hundred million as it is spoken."""
    for unit, word in ((10000, "万"), (1000, "千"), (100, "百"), (10, "十")):
        if value >= unit:
            head, rest = divmod(value, unit)
            gap = "零" if rest and rest < unit // 10 else ""
            start = "" if unit == 10 and head == 1 else number(head)
            return start + word + gap + (number(rest) if rest else "")
    return DIGITS[value]


def amount(value):
    """A number before a measure word."""
    return "两" if value == 2 else number(value)


def score(text):
    home, away = text.split("-")
    return f"{number(int(home))}比{number(int(away))}"


def crowd(text):
    thousands = int(text.replace(",", "")) // 1000 * 1000
    return number(thousands) + "多名"


def spoken_day(text):
    year, month, date = text.split("-")
    return "".join(DIGITS[int(d)] for d in year) + f"年{number(int(month))}月{number(int(date))}日"


def match_report(story, place):
    home, away = name(story["home_team"]), name(story["away_team"])
    opening = ("先来看", "再来看", "接着看", "还有")[min(place, 3)]
    if story["winner"] is None:
        ending = f"{home}和{away}打成了{score(story['score'])}平"
    else:
        won = story["winner"] == story["home_team"]
        ending = f"{home}以{score(story['score'])}{'战胜' if won else '不敌'}了{away}"
    parts = [f"{opening}{story['group']}组的一场比赛。在{name(story['venue'])}，{ending}。"]
    parts.append(
        f"现场来了{crowd(story['attendance'])}观众，上半场结束的时候，比分是{score(story['half_time_score'])}。"
    )
    for goal in story["goals"]:
        scored = f"{name(goal['team'])}的{name(goal['player'])}{name(goal['how'])}"
        parts.append(f"比赛进行到第{number(goal['minute'])}分钟，{scored}，场上比分变成{score(goal['score_after'])}。")
    if story["comeback"] and story["winner"]:
        parts.append(f"先失球，后反超，{name(story['winner'])}在下半场的耐心很值得一提。")
    elif story["comeback"]:
        parts.append("一度落后的球队没有放弃，最后把比分追平，这份韧劲让人佩服。")
    else:
        parts.append("机会不多的比赛，往往就看谁能把握住那一下，这一场正是这样。")
    if story["winner"]:
        parts.append(f"{name(story['winner'])}拿到三分，在小组里占得了先机。")
    else:
        parts.append("两支球队各拿一分，谁能出线，还要看下一轮。")
    parts.append(f"全场最佳球员，给了{name(story['player_of_the_match'])}。")
    return "".join(parts)


def team_news(story):
    return (
        f"再说一条球队的消息。{name(story['team'])}的{name(story['player'])}{name(story['injury'])}，"
        f"预计要缺席{amount(int(story['out_for'].split()[0]))}场比赛。"
        f"顶替他出场的，很可能是{name(story['replacement'])}。"
        "大赛的赛程很紧，主力受伤，考验的是整支球队的厚度，也考验教练手里的牌。"
    )


def preview(story):
    hour = int(story["kick_off"].split(":")[0])
    clock = (
        f"晚上{amount(hour - 12)}点"
        if hour >= 18
        else f"下午{amount(hour - 12)}点"
        if hour > 12
        else f"{amount(hour)}点"
    )
    return (
        f"最后预告一场比赛。{story['group']}组的{name(story['home_team'])}，要在{name(story['venue'])}"
        f"迎战{name(story['away_team'])}，当地时间{clock}开球。"
        f"目前两队的积分，一边是{number(int(story['home_points']))}分，一边是{number(int(story['away_points']))}分，"
        "谁赢下这一场，谁就离淘汰赛更近一大步。喜欢早起看球的朋友，可以先把闹钟定好。"
    )


def compose(notes):
    paragraphs = [
        "（彩排稿：由预排程序根据示例网页生成，并非真实新闻）",
        f"各位听众朋友，早上好，欢迎收听《世界杯五分钟》。今天是{spoken_day(day)}，"
        f"我们一共准备了{amount(len(outline))}条消息，有比赛结果，有球队近况，也有接下来的看点。话不多说，马上开始。",
    ]
    place = 0
    for story in outline:
        if story["story"] == "match report":
            paragraphs.append(match_report(story, place))
            place += 1
        elif story["story"] == "team news":
            paragraphs.append(team_news(story))
        elif story["story"] == "preview":
            paragraphs.append(preview(story))
    if notes:
        paragraphs.append("说完今天的消息，再来聊几句世界杯的小知识。" + "".join(notes))
    paragraphs.append(
        "好了，今天的节目就到这里。记住一句话：球是圆的，好戏总在下一场。感谢您的收听，我们明天同一时间再见。"
    )
    return "\n\n".join(paragraphs)


def han(text):
    return sum("\u4e00" <= character <= "\u9fff" for character in text)


script = compose(NOTES[:notes_wanted])
print("COUNT han", han(script))
print("COUNT base", han(compose([])))
print("COUNT per_note", sum(map(han, NOTES)) // len(NOTES))
print("SCRIPT " + json.dumps(script, ensure_ascii=False))
